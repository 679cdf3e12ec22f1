/* A time of day that jumps: the number in the file CLOCK_JUMP (nanoseconds, 64 bits) is added to it. Monotonic time
   goes on. The kernel knows nothing of the jump, so a wait until a time of day is made in pieces: at the end of each
   piece it is compared with the time of day as it is by then. Preloaded into the gateway. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
#define PIECE_NS (SECOND_NS / 10)
#define MONOTONIC_S 1000000000LL /* the machine has not been up for so long, and 1970 was longer ago */

static const volatile int64_t *jump_ns;

__attribute__((constructor)) static void map_jump(void) {
  const char *path = getenv("CLOCK_JUMP");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *number = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *jump_ns, PROT_READ, MAP_SHARED, file, 0);
  if (number == MAP_FAILED) { /* a clock that cannot jump would pass every test */
    perror("jumping_clock: CLOCK_JUMP");
    _exit(EXIT_FAILURE);
  }
  jump_ns = number;
}

static struct timespec moment(int64_t ns) {
  return (struct timespec){.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
}

static int64_t ns_of(const struct timespec *time) { return time->tv_sec * SECOND_NS + time->tv_nsec; }

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, now);
  if (!failed && jump_ns && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    *now = moment(ns_of(now) + *jump_ns);
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec time;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &time);
  *now = (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *now) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  if (now) *now = time.tv_sec;
  return time.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  if (until->tv_sec < MONOTONIC_S) return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, until);
  struct timespec now, end;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t left_ns = ns_of(until) - ns_of(&now);
  int is_last = left_ns <= PIECE_NS;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end = moment(ns_of(&end) + (is_last ? left_ns > 0 ? left_ns : 0 : PIECE_NS));
  int failed = pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &end);
  return failed == ETIMEDOUT && !is_last ? 0 : failed; /* each wait may end for no reason, and is begun again */
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
  /* glibc's types of C11 are those of POSIX */
  int failed = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
  return failed == ETIMEDOUT ? thrd_timedout : failed ? thrd_error : thrd_success;
}
