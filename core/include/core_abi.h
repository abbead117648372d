/* The agreement between core and native backends, which are built apart from it.
 *
 * A native backend is refused at load, by name, when it was built for another version than the
 * running core has. The number grows with every change that an old backend could not survive.
 */
#ifndef CORE_ABI_H
#define CORE_ABI_H

#define CORE_ABI_VERSION 1

#endif
