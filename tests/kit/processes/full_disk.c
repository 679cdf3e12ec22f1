/* A disk that fills at a word: while the file FULL_DISK_MARK is there, what would make a file below FULL_DISK_DIR
   longer fails with ENOSPC, half of it written now and then, as on a real one. Preloaded into the gateway. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_full(int fd, off_t end) {
  const char *mark = getenv("FULL_DISK_MARK"), *dir = getenv("FULL_DISK_DIR");
  char link[64], path[4096];
  struct stat file;
  if (!mark || !dir || access(mark, F_OK)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return !strncmp(path, dir, strlen(dir)) && !fstat(fd, &file) && end > file.st_size;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  static unsigned calls;
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
  if (!is_full(fd, at + (off64_t)size)) return real(fd, data, size, at);
  if (++calls % 3 == 0 && size > 1) return real(fd, data, size / 2, at);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t write(int fd, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "write");
  if (!is_full(fd, lseek(fd, 0, SEEK_CUR) + (off_t)size)) return real(fd, data, size);
  errno = ENOSPC;
  return -1;
}

int ftruncate64(int fd, off64_t size) {
  static int (*real)(int, off64_t);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "ftruncate64");
  if (!is_full(fd, size)) return real(fd, size);
  errno = ENOSPC;
  return -1;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
