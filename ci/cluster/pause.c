/* Holds the namespaces of a pod: waits, collects orphans, and ends when it is asked to. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) {
  (void)signal;
  _exit(EXIT_SUCCESS);
}

int main(void) {
  struct sigaction ending = {.sa_handler = end};
  sigaction(SIGTERM, &ending, NULL);
  sigaction(SIGINT, &ending, NULL);
  for (;;) {
    if (waitpid(-1, NULL, 0) < 0) {
      sleep(1);
    }
  }
}
