"""core tune: finds the settings of a model with which it serves most requests within an objective.

settings, observation, tuning   what may change, what a measurement finds, one run
queueing        predicts limits from service times, by simulation
search          decides what is measured next
server          a running server or an own one, and the load on it
configuration   settings in JSON and in config.pbtxt
flags, report   the command line, and what is written
"""
