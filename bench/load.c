/* An HTTP/1.1 load client: one thread, epoll, keep-alive connections to 127.0.0.1, one JSON object on stdout.

   Closed loop (no --rate): every connection sends its next request when the answer to the last one is complete.
   Open loop (--rate R): requests are due at fixed instants, R a second, whatever the server does; latency counts
   from the instant a request was due, also when no connection was free for it then.

   With --stream an answer is a stream of server-sent events. An event counts when its data line holds --marker;
   a stream is complete when it has said [DONE] and its body has ended as HTTP says. */

#define _GNU_SOURCE
#include "answer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { MAX_REQUEST = 1 << 20, RECEIVE = 65536 };

struct options {
    int port, connections;
    const char *path, *body_file, *marker;
    char headers[4096];
    double rate, seconds, grace_s;
    long most;
    bool stream;
};

struct connection {
    int fd;
    bool busy;
    double due_ms; /* when the request was due; latency counts from here */
    struct answer answer;
};

struct samples {
    float *at;
    size_t used, room;
};

static struct options opt = {.connections = 1, .path = "/", .marker = "", .seconds = 1, .grace_s = 20, .most = -1};
static struct connection *connections;
static char *request;
static size_t request_size;
static int epoll_fd, timer_fd;
static double start_ms, end_ms;

static long sent, answered, bad_status, cut, reconnects, incomplete, streams, events;
static long fewest_events = -1, most_events = -1;
static struct samples latencies, first_events;
static char first_error[EXCERPT + 16];

static void die(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void add_sample(struct samples *samples, double value) {
    if (samples->used == samples->room) {
        samples->room = samples->room ? samples->room * 2 : 4096;
        samples->at = realloc(samples->at, samples->room * sizeof *samples->at);
        if (!samples->at) die("memory");
    }
    samples->at[samples->used++] = (float)value;
}

/* ---- one request ---- */

static void dial(struct connection *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)opt.port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    int on = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to)) die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
    c->busy = false;
}

static void send_request(struct connection *c, double due_ms) {
    size_t done = 0;
    c->busy = true;
    c->due_ms = due_ms;
    answer_begin(&c->answer);
    sent++;
    while (done < request_size) {
        ssize_t n = send(c->fd, request + done, request_size - done, MSG_NOSIGNAL);
        if (n < 0) break; /* the read that follows finds the connection closed, and counts it */
        done += (size_t)n;
    }
}

static void finish_stream(struct connection *c) {
    struct answer *a = &c->answer;
    streams++;
    events += a->events;
    if (!a->said_done) incomplete++;
    if (a->events) add_sample(&first_events, a->first_event_ms - c->due_ms);
    if (fewest_events < 0 || a->events < fewest_events) fewest_events = a->events;
    if (a->events > most_events) most_events = a->events;
}

/* The first answer that is not 200, in words that JSON can hold. */
static void keep_error(struct answer *a) {
    bad_status++;
    if (*first_error) return;
    sprintf(first_error, "%d: %s", a->status, a->excerpt);
    for (char *p = first_error; *p; p++)
        if (*p < ' ' || *p == '"' || *p == '\\') *p = '\'';
}

static void finish(struct connection *c) {
    answered++;
    c->busy = false;
    if (c->answer.status != 200) {
        keep_error(&c->answer);
        return;
    }
    add_sample(&latencies, now_ms() - c->due_ms);
    if (opt.stream) finish_stream(c);
}

static void on_readable(struct connection *c) {
    static char bytes[RECEIVE];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n > 0) {
        if (!c->busy) return;
        if (!answer_read(&c->answer, bytes, (size_t)n, opt.stream, opt.marker)) die("a head of more than 16 KiB");
        if (c->answer.stage == COMPLETE) finish(c);
        return;
    }
    if (c->busy) cut++;
    reconnects++;
    close(c->fd);
    dial(c);
}

/* ---- the load ---- */

static bool may_send(double now) { return now < end_ms && (opt.most < 0 || sent < opt.most); }

static double next_due(void) { return start_ms + (double)sent * 1e3 / opt.rate; }

static struct connection *idle_connection(void) {
    for (int i = 0; i < opt.connections; i++)
        if (!connections[i].busy) return connections + i;
    return NULL;
}

static void arm_timer(double at_ms) {
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(at_ms / 1e3)}};
    at.it_value.tv_nsec = (long)((at_ms - (double)at.it_value.tv_sec * 1e3) * 1e6) + 1;
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void send_due(void) {
    struct connection *idle;
    double now = now_ms();
    while (may_send(now) && next_due() <= now && next_due() < end_ms && (idle = idle_connection()))
        send_request(idle, next_due());
    if (may_send(now) && next_due() > now) arm_timer(next_due());
}

static void send_again(struct connection *c) {
    double now = now_ms();
    if (!c->busy && may_send(now)) send_request(c, now);
}

static int busy_connections(void) {
    int busy = 0;
    for (int i = 0; i < opt.connections; i++) busy += connections[i].busy;
    return busy;
}

static bool over(void) {
    double now = now_ms();
    bool all_sent = !may_send(now) || (opt.rate > 0 && next_due() >= end_ms);
    return (all_sent && !busy_connections()) || now > end_ms + opt.grace_s * 1e3;
}

static void run(void) {
    struct epoll_event ready[256];
    start_ms = now_ms();
    end_ms = start_ms + opt.seconds * 1e3;
    for (int i = 0; i < opt.connections && opt.rate == 0; i++) send_again(connections + i);
    if (opt.rate > 0) send_due();
    while (!over()) {
        int n = epoll_wait(epoll_fd, ready, 256, 100);
        for (int i = 0; i < n; i++) {
            struct connection *c = ready[i].data.ptr;
            uint64_t expirations;
            if (!c) {
                if (read(timer_fd, &expirations, sizeof expirations) < 0) continue;
            } else {
                on_readable(c);
                if (opt.rate == 0) send_again(c);
            }
        }
        if (opt.rate > 0) send_due();
    }
}

/* ---- setting up and reporting ---- */

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_samples(const char *name, struct samples *samples) {
    static const double shares[] = {0.5, 0.9, 0.99, 1};
    static const char *labels[] = {"p50", "p90", "p99", "max"};
    qsort(samples->at, samples->used, sizeof *samples->at, by_value);
    printf(", \"%s\": {", name);
    for (int i = 0; i < 4; i++) {
        size_t rank = (size_t)(shares[i] * (double)samples->used);
        if (samples->used && rank >= samples->used) rank = samples->used - 1;
        printf("%s\"%s\": %.3f", i ? ", " : "", labels[i], samples->used ? samples->at[rank] : 0.0);
    }
    printf("}");
}

static void report(void) {
    double seconds = (now_ms() - start_ms) / 1e3;
    printf("{\"sent\": %ld, \"answered\": %ld, \"seconds\": %.4f", sent, answered, seconds);
    printf(", \"bad_status\": %ld, \"cut\": %ld, \"unfinished\": %d", bad_status, cut, busy_connections());
    printf(", \"reconnects\": %ld, \"streams\": %ld, \"incomplete_streams\": %ld, \"events\": %ld", reconnects, streams,
           incomplete, events);
    printf(", \"fewest_events\": %ld, \"most_events\": %ld", fewest_events < 0 ? 0 : fewest_events,
           most_events < 0 ? 0 : most_events);
    print_samples("latency_ms", &latencies);
    print_samples("first_event_ms", &first_events);
    printf(", \"first_error\": \"%s\"}\n", first_error);
}

static void build_request(void) {
    char *body = calloc(1, MAX_REQUEST);
    size_t body_size = 0;
    if (opt.body_file) {
        FILE *file = fopen(opt.body_file, "r");
        if (!file) die(opt.body_file);
        body_size = fread(body, 1, MAX_REQUEST, file);
        fclose(file);
    }
    request = malloc(MAX_REQUEST + sizeof opt.headers + 1024);
    const char *method = opt.body_file ? "POST" : "GET";
    int head = sprintf(request, "%s %.512s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", method, opt.path, opt.port);
    head += sprintf(request + head, "%sContent-Type: application/json\r\n", opt.headers);
    head += sprintf(request + head, "Content-Length: %zu\r\n\r\n", body_size);
    memcpy(request + head, body, body_size);
    request_size = (size_t)head + body_size;
    free(body);
}

static const char usage[] =
    "usage: load --port N [--path /] [--body FILE] [--header 'Name: value']... [--connections N] [--rate PER_SECOND]\n"
    "            [--seconds S] [--most REQUESTS] [--grace S] [--stream] [--marker TEXT]\n";

static void add_header(const char *line) {
    size_t used = strlen(opt.headers);
    if (used + strlen(line) + 3 > sizeof opt.headers) die("headers over 4 KiB");
    sprintf(opt.headers + used, "%s\r\n", line);
}

static void read_options(int count, char **words) {
    static const struct option known[] = {
        {"port", 1, 0, 'p'},    {"path", 1, 0, 'u'},  {"body", 1, 0, 'b'},  {"header", 1, 0, 'H'},
        {"connections", 1, 0, 'c'}, {"rate", 1, 0, 'r'}, {"seconds", 1, 0, 't'}, {"most", 1, 0, 'n'},
        {"grace", 1, 0, 'g'},   {"stream", 0, 0, 's'}, {"marker", 1, 0, 'm'}, {0}};
    int letter;
    while ((letter = getopt_long(count, words, "", known, NULL)) >= 0) switch (letter) {
            case 'p': opt.port = atoi(optarg); break;
            case 'u': opt.path = optarg; break;
            case 'b': opt.body_file = optarg; break;
            case 'H': add_header(optarg); break;
            case 'c': opt.connections = atoi(optarg); break;
            case 'r': opt.rate = atof(optarg); break;
            case 't': opt.seconds = atof(optarg); break;
            case 'n': opt.most = atol(optarg); break;
            case 'g': opt.grace_s = atof(optarg); break;
            case 's': opt.stream = true; break;
            case 'm': opt.marker = optarg; break;
            default: fputs(usage, stderr); exit(2);
        }
    if (!opt.port || opt.connections < 1) {
        fputs(usage, stderr);
        exit(2);
    }
}

int main(int count, char **words) {
    struct epoll_event timer_event = {.events = EPOLLIN, .data.ptr = NULL};
    read_options(count, words);
    build_request();
    epoll_fd = epoll_create1(0);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &timer_event);
    connections = calloc((size_t)opt.connections, sizeof *connections);
    if (!connections) die("memory");
    for (int i = 0; i < opt.connections; i++) dial(connections + i);
    run();
    report();
    return 0;
}
