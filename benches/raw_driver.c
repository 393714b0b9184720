/* raw_driver: the floor for calls over stdio on this machine. It starts a server, shakes hands,
 * and then only moves bytes: requests written in advance, answers counted by their newlines.
 *
 *   cc -O2 -o raw_driver raw_driver.c
 *   raw_driver CALLS DEPTH SERVER [ARGUMENT]...
 *   raw_driver CALLS DEPTH unix:PATH
 *
 * The second form calls a server that listens on a Unix socket. RAW_TOOL names the tool to call;
 * `echo` without it.
 * DEPTH calls are kept in flight. Prints one line: calls per second and microseconds per call,
 * taken from the first call's write to the last answer; the whole process is timed from outside.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define FIRST_ID 1000000000L /* all ids have ten digits, so that one can be written over another */
#define ID_DIGITS 10

static const char HELLO[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"raw_driver\",\"version\":\"1\"}}}\n";
static const char READY[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
static const char CALL_FORM[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1000000000,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
    "\"arguments\":{\"message\":\"hi\"}}}\n";
static char CALL[512];
static size_t CALL_LENGTH;
#define ID_OFFSET (sizeof "{\"jsonrpc\":\"2.0\",\"id\":" - 1)

static int to_server, from_server;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void put(const char *at, size_t len) {
    while (len) {
        ssize_t n = write(to_server, at, len);
        if (n <= 0) fail("raw_driver: write");
        at += n;
        len -= (size_t)n;
    }
}

/* Waits for some bytes and counts the lines that end in them. */
static long take(void) {
    static char bytes[1 << 18];
    ssize_t n = read(from_server, bytes, sizeof bytes);
    if (n <= 0) fail("raw_driver: the server ended");
    long lines = 0;
    for (char *p = bytes; (p = memchr(p, '\n', (size_t)(bytes + n - p))); p++) lines++;
    return lines;
}

static pid_t start(char **argv) {
    int in[2], out[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) fail("raw_driver: pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (posix_spawnp(&child, argv[0], &actions, NULL, argv, environ)) fail(argv[0]);
    close(in[0]);
    close(out[1]);
    to_server = in[1];
    from_server = out[0];
    return child;
}

static void open_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) fail("raw_driver: the path is too long");
    strcpy(address.sun_path, path);
    to_server = from_server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (to_server < 0 || connect(to_server, (struct sockaddr *)&address, sizeof address)) fail(path);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    long calls = argc > 3 ? atol(argv[1]) : 0, depth = argc > 3 ? atol(argv[2]) : 0;
    if (calls < 1 || depth < 1) {
        fprintf(stderr, "usage: raw_driver CALLS DEPTH SERVER [ARGUMENT]...\n");
        return 2;
    }
    const char *tool = getenv("RAW_TOOL");
    int length = snprintf(CALL, sizeof CALL, CALL_FORM, tool ? tool : "echo");
    if (length < 0 || (size_t)length >= sizeof CALL) fail("raw_driver: the name is too long");
    CALL_LENGTH = (size_t)length;
    pid_t child = 0;
    if (strncmp(argv[3], "unix:", 5) == 0) open_socket(argv[3] + 5);
    else child = start(argv + 3);

    /* DEPTH requests side by side; before they are sent only their ids are written anew. */
    char *batch = malloc((size_t)depth * CALL_LENGTH);
    if (!batch) fail("raw_driver");
    for (long i = 0; i < depth; i++) memcpy(batch + (size_t)i * CALL_LENGTH, CALL, CALL_LENGTH);

    put(HELLO, sizeof HELLO - 1);
    while (take() == 0) {}
    put(READY, sizeof READY - 1);

    double began = now();
    long sent = 0, answered = 0;
    while (answered < calls) {
        long room = depth - (sent - answered), left = calls - sent;
        long next = room < left ? room : left;
        for (long i = 0; i < next; i++) {
            long id = FIRST_ID + sent++;
            char *digit = batch + (size_t)i * CALL_LENGTH + ID_OFFSET + ID_DIGITS;
            for (int k = 0; k < ID_DIGITS; k++, id /= 10) *--digit = (char)('0' + id % 10);
        }
        put(batch, (size_t)next * CALL_LENGTH);
        answered += take();
    }
    double seconds = now() - began;

    printf("%.0f calls/s, %.2f us/call, depth %ld\n", (double)calls / seconds,
           seconds / (double)calls * 1e6, depth);
    close(to_server);
    if (child) waitpid(child, NULL, 0);
    return 0;
}
