/* Kills the process that is about to rename a file to offsets/0: cc -shared -fPIC -o killer.so killer.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int rename(const char *from, const char *to) {
    static const char end[] = "/offsets/0";
    size_t length = strlen(to);
    if (length >= sizeof end - 1 && strcmp(to + length - (sizeof end - 1), end) == 0) kill(getpid(), SIGKILL);
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return real(from, to);
}
