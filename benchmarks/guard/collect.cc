// Start and stop callgrind's counting; outside of valgrind both calls do nothing.
#include <valgrind/callgrind.h>

extern "C" void begin() { CALLGRIND_START_INSTRUMENTATION; }
extern "C" void end() { CALLGRIND_STOP_INSTRUMENTATION; }
