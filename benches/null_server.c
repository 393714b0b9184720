/* null_server: an MCP server that costs next to nothing, so that what is measured is the client.
 *
 *   cc -O2 -o null_server null_server.c
 *   null_server [--tools N] [--start-delay MS] [--legacy]              on stdin and stdout
 *   null_server [--tools N] [--start-delay MS] [--legacy] --http PORT  on 127.0.0.1:PORT/mcp
 *
 * It speaks both eras (initialize at 2025-11-25, server/discover at 2026-07-28; --legacy leaves
 * the second out), lists N tools (echo, echo-1, echo-2, ...; 3 unless told), and answers a call of
 * any of them with the message it got. PORT 0 takes a free one and prints it as `port N`.
 *
 * Messages are scanned once, without building anything: only the id, the method, the message of a
 * call and the revision named in _meta are looked at. What is not understood is answered with {}.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SERVER_INFO "{\"name\":\"null\",\"version\":\"1.0.0\"}"
#define MODERN_REVISION "2026-07-28"
#define CONNECTIONS 1024

/* ---- bytes ------------------------------------------------------------------------------- */

struct span { const char *at; size_t len; };

static bool span_is(struct span s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

struct buffer { char *at; size_t len, room; };

static void grow(struct buffer *b, size_t more) {
    while (b->room < b->len + more) b->room = b->room ? b->room * 2 : 65536;
    b->at = realloc(b->at, b->room);
    if (!b->at) { perror("null_server"); exit(1); }
}

static inline void reserve(struct buffer *b, size_t more) {
    if (b->len + more > b->room) grow(b, more);
}

static inline void add(struct buffer *b, const char *at, size_t len) {
    reserve(b, len);
    memcpy(b->at + b->len, at, len);
    b->len += len;
}

/* Always inlined, so that the length of a literal is known where it is added. */
__attribute__((always_inline))
static inline void add_text(struct buffer *b, const char *text) { add(b, text, strlen(text)); }

__attribute__((format(printf, 2, 3)))
static void add_format(struct buffer *b, const char *format, ...) {
    va_list arguments;
    reserve(b, 1024);
    va_start(arguments, format);
    b->len += (size_t)vsnprintf(b->at + b->len, 1024, format, arguments);
    va_end(arguments);
}

static void drop_front(struct buffer *b, size_t len) {
    memmove(b->at, b->at + len, b->len - len);
    b->len -= len;
}

static bool write_all(int fd, const char *at, size_t len) {
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* ---- reading a message ------------------------------------------------------------------- */

static const char *skip_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) p++;
    return p;
}

/* The end of the string whose opening quote is at p. */
static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end; p++) {
        if (*p == '\\') p++;
        else if (*p == '"') return p + 1;
    }
    return end;
}

/* The end of the value at p. */
static const char *skip_value(const char *p, const char *end) {
    size_t depth = 0;
    while (p < end) {
        char c = *p;
        if (c == '"') p = skip_string(p, end);
        else if (c == '{' || c == '[') depth++, p++;
        else if (c == '}' || c == ']') {
            if (depth == 0) return p;
            depth--, p++;
        } else if (depth == 0 && (c == ',' || c == ' ' || c == '\r' || c == '\n')) return p;
        else p++;
        if (depth == 0 && (c == '"' || c == '}' || c == ']')) return p;
    }
    return end;
}

struct wanted { const char *key; struct span *value; };

/* Fills in the values of the wanted keys of an object in one pass and leaves the others as they
 * are. Keys with escapes in them are not recognised; nothing that this server looks for has any. */
static void members(struct span object, const struct wanted *wanted, size_t count) {
    const char *p = object.at, *end = object.at + object.len;
    if (!object.len || *p != '{') return;
    for (p++;;) {
        p = skip_space(p, end);
        if (p >= end || *p != '"') return;
        struct span key = {p + 1, 0};
        p = skip_string(p, end);
        key.len = (size_t)(p - 1 - key.at);
        p = skip_space(p, end);
        if (p >= end || *p != ':') return;
        const char *value = p = skip_space(p + 1, end);
        p = skip_value(p, end);
        for (size_t i = 0; i < count; i++)
            if (span_is(key, wanted[i].key))
                *wanted[i].value = (struct span){value, (size_t)(p - value)};
        p = skip_space(p, end);
        if (p >= end || *p != ',') return;
        p++;
    }
}

/* ---- answering --------------------------------------------------------------------------- */

static bool legacy_only;
static struct buffer tools; /* the members of the tool list, written once */

static void write_tools(long count) {
    for (long i = 0; i < count; i++) {
        if (i) add_format(&tools, ",{\"name\":\"echo-%ld\"", i);
        else add_text(&tools, "{\"name\":\"echo\"");
        add_format(&tools,
                   ",\"description\":\"Gives the message back unchanged (%ld).\",\"inputSchema\":{"
                   "\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\","
                   "\"description\":\"what to give back\"}},\"required\":[\"message\"]},"
                   "\"annotations\":{\"readOnlyHint\":true}}", i);
    }
}

/* Appends the answer to a message; nothing for a notification. */
static void answer(struct span message, struct buffer *out) {
    struct span id = {0}, method = {0}, params = {0}, meta = {0}, arguments = {0}, revision = {0};
    members(message, (struct wanted[]){{"id", &id}, {"method", &method}, {"params", &params}}, 3);
    if (!id.len || !method.len) return;
    members(params, (struct wanted[]){{"_meta", &meta}, {"arguments", &arguments}}, 2);
    members(meta, &(struct wanted){"io.modelcontextprotocol/protocolVersion", &revision}, 1);
    const char *tail = span_is(revision, "\"" MODERN_REVISION "\"")
        ? ",\"resultType\":\"complete\"" : "";

    add_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    add(out, id.at, id.len);
    if (span_is(method, "\"tools/call\"")) {
        struct span text = {0};
        members(arguments, &(struct wanted){"message", &text}, 1);
        add_text(out, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
        if (text.len && *text.at == '"') add(out, text.at, text.len);
        else add_text(out, "\"\"");
        add_text(out, "}],\"isError\":false");
        add_text(out, tail);
        add_text(out, "}");
    } else if (span_is(method, "\"tools/list\"")) {
        add_text(out, ",\"result\":{\"tools\":[");
        add(out, tools.at, tools.len);
        add_format(out, "]%s%s}", tail, *tail ? ",\"ttlMs\":0,\"cacheScope\":\"private\"" : "");
    } else if (span_is(method, "\"server/discover\"") && !legacy_only) {
        add_text(out, ",\"result\":{\"supportedVersions\":[\"" MODERN_REVISION "\"],"
                      "\"capabilities\":{\"tools\":{}},\"resultType\":\"complete\",\"ttlMs\":0,"
                      "\"cacheScope\":\"private\",\"_meta\":{"
                      "\"io.modelcontextprotocol/serverInfo\":" SERVER_INFO "}}");
    } else if (span_is(method, "\"server/discover\"")) {
        add_text(out, ",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}");
    } else if (span_is(method, "\"initialize\"")) {
        add_text(out, ",\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":"
                      "{\"tools\":{}},\"serverInfo\":" SERVER_INFO "}");
    } else {
        add_format(out, ",\"result\":{%s}", *tail ? tail + 1 : "");
    }
    add_text(out, "}");
}

/* ---- stdio ------------------------------------------------------------------------------- */

/* Reads what there is, answers every whole line of it, writes the answers at once. */
static void serve_stdio(void) {
    struct buffer in = {0}, out = {0};
    for (;;) {
        reserve(&in, 65536);
        ssize_t n = read(STDIN_FILENO, in.at + in.len, in.room - in.len);
        if (n <= 0) return;
        in.len += (size_t)n;
        size_t done = 0;
        char *newline;
        out.len = 0;
        while ((newline = memchr(in.at + done, '\n', in.len - done))) {
            size_t before = out.len, len = (size_t)(newline - (in.at + done));
            answer((struct span){in.at + done, len}, &out);
            if (out.len > before) add(&out, "\n", 1);
            done += len + 1;
        }
        drop_front(&in, done);
        if (!write_all(STDOUT_FILENO, out.at, out.len)) return;
    }
}

/* ---- Streamable HTTP ---------------------------------------------------------------------- */

/* The value of Content-Length in a header block; 0 without one. */
static size_t content_length(struct span head) {
    static const char name[] = "\ncontent-length:";
    for (size_t i = 0; i + sizeof name < head.len; i++)
        if (head.at[i] == '\n' && !strncasecmp(head.at + i, name, sizeof name - 1))
            return strtoul(head.at + i + sizeof name - 1, NULL, 10);
    return 0;
}

/* Answers every whole request in `in`; appends to `out`. Only POST is served. */
static void serve_requests(struct buffer *in, struct buffer *out) {
    static struct buffer body;
    for (;;) {
        char *blank = in->len ? memmem(in->at, in->len, "\r\n\r\n", 4) : NULL;
        if (!blank) return;
        size_t head = (size_t)(blank - in->at) + 4;
        size_t length = content_length((struct span){in->at, head});
        if (in->len < head + length) return;
        body.len = 0;
        if (memcmp(in->at, "POST ", 5) != 0) {
            add_text(out, "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n");
        } else {
            answer((struct span){in->at + head, length}, &body);
            if (!body.len) add_text(out, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
            else add_format(out, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                                 "content-length: %zu\r\n\r\n", body.len);
            add(out, body.at, body.len);
        }
        drop_front(in, head + length);
    }
}

static int listen_on(int port) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, CONNECTIONS)) {
        perror("null_server");
        exit(1);
    }
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void serve_http(int port) {
    static struct pollfd watched[CONNECTIONS + 1];
    static struct buffer pending[CONNECTIONS + 1];
    struct buffer out = {0};
    nfds_t count = 1;
    watched[0] = (struct pollfd){.fd = listen_on(port), .events = POLLIN};
    for (;;) {
        if (poll(watched, count, -1) < 0) return;
        /* Backwards, so that a closed one can be replaced by the last. */
        for (nfds_t i = count - 1; i > 0; i--) {
            if (!watched[i].revents) continue;
            struct buffer *in = &pending[i];
            reserve(in, 65536);
            ssize_t n = read(watched[i].fd, in->at + in->len, in->room - in->len);
            bool alive = n > 0;
            if (alive) {
                in->len += (size_t)n;
                out.len = 0;
                serve_requests(in, &out);
                alive = write_all(watched[i].fd, out.at, out.len);
            }
            if (!alive) {
                close(watched[i].fd);
                free(in->at);
                watched[i] = watched[--count];
                pending[i] = pending[count];
                pending[count] = (struct buffer){0};
            }
        }
        if (watched[0].revents && count <= CONNECTIONS) {
            int one = 1, fd = accept(watched[0].fd, NULL, NULL);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            watched[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
}

/* ---- */

int main(int argc, char **argv) {
    long count = 3, delay = 0, port = -1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--legacy")) legacy_only = true;
        else if (!strcmp(argv[i], "--tools") && value) count = atol(value), i++;
        else if (!strcmp(argv[i], "--start-delay") && value) delay = atol(value), i++;
        else if (!strcmp(argv[i], "--http") && value) port = atol(value), i++;
        else {
            fprintf(stderr, "null_server: what is %s?\n", argv[i]);
            return 2;
        }
    }
    signal(SIGPIPE, SIG_IGN);
    write_tools(count);
    struct timespec pause = {.tv_sec = delay / 1000, .tv_nsec = delay % 1000 * 1000000};
    nanosleep(&pause, NULL);
    if (port >= 0) serve_http((int)port);
    else serve_stdio();
    return 0;
}
