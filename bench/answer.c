/* See answer.h. Each reader below takes some of the bytes and says how many. */

#define _GNU_SOURCE
#include "answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static const size_t STUCK = (size_t)-1;

double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void answer_begin(struct answer *answer) {
    memset(answer, 0, offsetof(struct answer, framing));
}

/* Append what fits to a bounded buffer. */
static void keep(char *buffer, int *used, size_t room, const char *bytes, size_t size) {
    size_t left = room - (size_t)*used;
    size_t kept = size < left ? size : left;
    memcpy(buffer + *used, bytes, kept);
    *used += (int)kept;
}

static void end_line(struct answer *a, const char *marker) {
    static const char data[] = "data: ", done[] = "data: [DONE]";
    size_t size = (size_t)a->line_used;
    a->line_used = 0;
    if (size < sizeof data - 1 || memcmp(a->line, data, sizeof data - 1)) return;
    if (size >= sizeof done - 1 && !memcmp(a->line, done, sizeof done - 1)) {
        a->said_done = true;
        return;
    }
    if (*marker && !memmem(a->line, size, marker, strlen(marker))) return;
    if (a->events++ == 0) a->first_event_ms = now_ms();
}

static void read_events(struct answer *a, const char *bytes, size_t size, const char *marker) {
    while (size) {
        const char *newline = memchr(bytes, '\n', size);
        size_t piece = newline ? (size_t)(newline - bytes) : size;
        keep(a->line, &a->line_used, MAX_LINE, bytes, piece);
        if (!newline) return;
        end_line(a, marker);
        bytes += piece + 1;
        size -= piece + 1;
    }
}

static size_t read_head(struct answer *a, const char *bytes, size_t size) {
    int before = a->head_used;
    keep(a->head, &a->head_used, MAX_HEAD - 1, bytes, size);
    a->head[a->head_used] = 0;
    char *end = strstr(a->head, "\r\n\r\n");
    if (!end) return a->head_used < MAX_HEAD - 1 ? size : STUCK;
    end[2] = 0;
    a->status = a->head_used > 12 ? atoi(a->head + 9) : 0;
    char *length = strcasestr(a->head, "\r\ncontent-length:");
    bool chunked = strcasestr(a->head, "\r\ntransfer-encoding: chunked") != NULL;
    a->left = length ? strtoull(length + 17, NULL, 10) : 0;
    a->stage = chunked ? CHUNK_SIZE : a->left ? SIZED : COMPLETE;
    return (size_t)(end + 4 - a->head - before);
}

static size_t read_data(struct answer *a, const char *bytes, size_t size, const char *marker) {
    size_t taken = size < a->left ? size : (size_t)a->left;
    if (a->status != 200)
        keep(a->excerpt, &a->excerpt_used, EXCERPT, bytes, taken);
    else if (marker)
        read_events(a, bytes, taken, marker);
    a->left -= taken;
    if (!a->left) a->stage = a->stage == SIZED ? COMPLETE : CHUNK_END;
    return taken;
}

/* A line of the chunk framing: a chunk's size, the end of a chunk, or a line of the trailer. */
static size_t read_framing(struct answer *a, const char *bytes, size_t size) {
    const char *newline = memchr(bytes, '\n', size);
    size_t piece = newline ? (size_t)(newline - bytes) : size;
    keep(a->framing, &a->framing_used, sizeof a->framing - 1, bytes, piece);
    if (!newline) return size;
    a->framing[a->framing_used] = 0;
    bool empty = a->framing_used <= 1;
    a->framing_used = 0;
    if (a->stage == CHUNK_SIZE) {
        a->left = strtoull(a->framing, NULL, 16);
        a->stage = a->left ? CHUNK_DATA : TRAILER;
    } else if (a->stage == CHUNK_END) {
        a->stage = CHUNK_SIZE;
    } else if (empty) {
        a->stage = COMPLETE;
    }
    return piece + 1;
}

bool answer_read(struct answer *a, const char *bytes, size_t size, bool stream, const char *marker) {
    while (size && a->stage != COMPLETE) {
        size_t taken;
        if (a->stage == HEAD)
            taken = read_head(a, bytes, size);
        else if (a->stage == SIZED || a->stage == CHUNK_DATA)
            taken = read_data(a, bytes, size, stream ? marker : NULL);
        else
            taken = read_framing(a, bytes, size);
        if (taken == STUCK) return false;
        bytes += taken;
        size -= taken;
    }
    a->excerpt[a->excerpt_used] = 0;
    return true;
}
