/* A delegate that takes no operators, and writes what happens to it into the file of its option "log".
 *
 * Option "refuse": "create" makes no delegate, "prepare" refuses every graph.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The layout of TfLiteDelegate. */
struct delegate {
  void *data;
  int (*prepare)(void *context, struct delegate *self);
  void *copy_from, *copy_to, *free_handle;
  int64_t flags;
  void *builder;
};
struct state { char log[512], refuse[32]; };

static void note(const struct delegate *self, const char *line) {
  FILE *file = fopen(((struct state *)self->data)->log, "a");
  if (file == NULL) return;
  fprintf(file, "%s\n", line);
  fclose(file);
}

static int prepare(void *context, struct delegate *self) {
  note(self, "prepared");
  return strcmp(((struct state *)self->data)->refuse, "prepare") == 0;
}

struct delegate *tflite_plugin_create_delegate(char **keys, char **values, int count,
                                               void (*report)(const char *)) {
  struct delegate *made = calloc(1, sizeof *made);
  struct state *state = made->data = calloc(1, sizeof *state);
  for (int i = 0; i < count; ++i) {
    if (strcmp(keys[i], "log") == 0) strncpy(state->log, values[i], sizeof state->log - 1);
    if (strcmp(keys[i], "refuse") == 0) strncpy(state->refuse, values[i], sizeof state->refuse - 1);
  }
  if (strcmp(state->refuse, "create") == 0) {
    report("no such device");
    free(state);
    free(made);
    return NULL;
  }
  made->prepare = prepare;
  note(made, "created");
  return made;
}

/* LiteRT also destroys the delegate that was not made. */
void tflite_plugin_destroy_delegate(struct delegate *self) {
  if (self == NULL) return;
  note(self, "destroyed");
  free(self->data);
  free(self);
}
