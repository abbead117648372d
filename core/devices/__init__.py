"""Arrays in the memory of devices.

visible.py   gpus: the GPUs that this process sees
dlpack.py    arrays of any library, by DLPack
memory.py    DeviceMemory: an array on a device, and at most one copy of it on the host
batch.py     DeviceBatch: a batch for instances that take arrays on devices
"""
