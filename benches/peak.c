/* peak: runs a command once, silently, and prints what it took.
 *
 *   cc -O2 -o peak peak.c
 *   peak COMMAND [ARGUMENT]...      prints `MICROSECONDS KIBIBYTES`
 *
 * The memory is the largest resident set of the command or of a child it waited for. A program of
 * its own, because the kernel counts what the starting process used before the command was loaded,
 * and this one uses next to nothing. Exits as the command does; 128 more when a signal ended it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    posix_spawn_file_actions_t silence;
    struct timespec began, ended;
    struct rusage usage;
    pid_t child;
    int status;
    if (argc < 2) {
        fprintf(stderr, "usage: peak COMMAND [ARGUMENT]...\n");
        return 2;
    }
    posix_spawn_file_actions_init(&silence);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&silence, fd, "/dev/null", O_RDWR, 0);
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (posix_spawnp(&child, argv[1], &silence, NULL, argv + 1, environ)) {
        perror(argv[1]);
        return 127;
    }
    if (wait4(child, &status, 0, &usage) < 0) {
        perror("peak");
        return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%ld %ld\n",
           (ended.tv_sec - began.tv_sec) * 1000000 + (ended.tv_nsec - began.tv_nsec) / 1000,
           usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
