/* One HTTP/1.1 answer as its bytes come in: its status, its end, and the server-sent events in it. */

#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_HEAD = 16384, MAX_LINE = 16384, EXCERPT = 300 };

/* What is being read: the head; a body of known size; or a chunked body, piece by piece. */
enum stage { HEAD, SIZED, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, COMPLETE };

struct answer {
    enum stage stage;
    int status;
    uint64_t left; /* bytes left of the body, or of its chunk */
    long events;   /* events whose data line holds the marker */
    double first_event_ms;
    bool said_done;            /* `data: [DONE]` has come */
    char excerpt[EXCERPT + 1]; /* the beginning of the body, when the status is not 200 */
    int excerpt_used, head_used, line_used, framing_used;
    char framing[64];
    char head[MAX_HEAD];
    char line[MAX_LINE]; /* a longer line of the event stream is judged by its beginning */
};

/* The monotonic clock in milliseconds. */
double now_ms(void);

/* Make ready for the next answer of a connection. */
void answer_begin(struct answer *answer);

/* Take what has come. `marker` is looked for in data lines where `stream`. Says false when the head is too long. */
bool answer_read(struct answer *answer, const char *bytes, size_t size, bool stream, const char *marker);

#endif
