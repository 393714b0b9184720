/* relay: the floor for what stands between a client and a server on this machine. It carries bytes
 * and looks at none of them; what it adds to a call is the price of waking one more process twice.
 *
 *   cc -O2 -o relay relay.c
 *   relay SERVER [ARGUMENT]...    starts the server and stands between its pipes and our own
 *   relay --http UPSTREAM-PORT    prints "listening PORT" and carries each connection to the upstream
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Carries bytes both ways until one side ends. */
static void carry(int client_in, int client_out, int server_in, int server_out) {
    static char bytes[1 << 16];
    struct pollfd from[2] = {{client_in, POLLIN, 0}, {server_out, POLLIN, 0}};
    int to[2] = {server_in, client_out};
    while (poll(from, 2, -1) >= 0) {
        for (int way = 0; way < 2; way++) {
            if (!from[way].revents) continue;
            ssize_t left = read(from[way].fd, bytes, sizeof bytes), done = 0;
            if (left <= 0) return;
            while (left) {
                ssize_t n = write(to[way], bytes + done, (size_t)left);
                if (n <= 0) return;
                done += n;
                left -= n;
            }
        }
    }
}

static int at_once(int stream) {
    int yes = 1;
    setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return stream;
}

static void carry_connections(int upstream_port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in upstream = address;
    upstream.sin_port = htons((in_port_t)upstream_port);
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 64)) fail("relay: listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("listening %d\n", ntohs(address.sin_port));
    fflush(stdout);
    signal(SIGCHLD, SIG_IGN); /* each connection has a process, which nothing waits for */
    for (int client; (client = accept(listener, NULL, NULL)) >= 0; close(client)) {
        if (fork()) continue;
        close(listener);
        int server = at_once(socket(AF_INET, SOCK_STREAM, 0));
        if (connect(server, (struct sockaddr *)&upstream, sizeof upstream)) fail("relay: connect");
        carry(at_once(client), client, server, server);
        exit(0);
    }
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "--http")) {
        carry_connections(atoi(words[2]));
        return 1;
    }
    int in[2], out[2];
    if (count < 2 || pipe(in) || pipe(out)) return 2;
    if (!fork()) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        execvp(words[1], words + 1);
        fail("relay: exec");
    }
    close(in[0]), close(out[1]);
    carry(0, 1, in[1], out[0]);
    return 0;
}
