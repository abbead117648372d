/* CORE_PORTABLE, unless "" or "0", forbids what only Linux has. core/system/platform.py reads it too. */
#pragma once

#include <stdlib.h>
#include <string.h>

static inline int form_is_portable(void) {
  const char* const value = getenv("CORE_PORTABLE");
  return value != NULL && strcmp(value, "") != 0 && strcmp(value, "0") != 0;
}
