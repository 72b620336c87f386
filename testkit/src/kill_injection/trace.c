/* Runs a program under ptrace and kills it with SIGKILL at a chosen change of the files below a directory. Programs that
 * make system calls without the C library, as the product does, cannot be watched with LD_PRELOAD.
 *
 * usage: trace DIRECTORY TRACE N PROGRAM ARGUMENT...
 *
 * Every change (a file that is created, renamed, linked, removed or given other permissions) is one line of TRACE. With
 * N > 0 the process that makes the N-th change is killed before it is made, and the last line of TRACE is the change that
 * was not made. Paths in .fusee, .git and HOME are not counted. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The answer to PTRACE_GET_SYSCALL_INFO at the entry of a call; its name differs between versions of the C library. */
struct call_info {
    uint8_t op, padding[3];
    uint32_t arch;
    uint64_t instruction, stack, number, arguments[6], rest[4];
};

static const char *directory;
static FILE *trace;
static long chosen, count;

/* Reads a string of another process; empty if that fails. */
static void string_at(pid_t pid, unsigned long address, char *text, size_t size) {
    size_t length = 0;
    while (length + 1 < size) {
        /* Up to the end of a page, since the next one may not be there. */
        size_t part = 4096 - (address + length) % 4096;
        if (part > size - 1 - length) part = size - 1 - length;
        struct iovec ours = {text + length, part}, theirs = {(void *)(address + length), part};
        ssize_t got = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
        if (got <= 0) break;
        char *end = memchr(text + length, 0, got);
        if (end) return;
        length += got;
    }
    text[length] = 0;
}

static void link_of(pid_t pid, const char *name, char *text, size_t size) {
    char place[64];
    snprintf(place, sizeof place, "/proc/%d/%s", pid, name);
    ssize_t length = readlink(place, text, size - 1);
    text[length > 0 ? length : 0] = 0;
}

/* The path that a name in a directory of a process stands for. */
static void path_at(pid_t pid, int dirfd, unsigned long name, char *path, size_t size) {
    char relative[2048], base[2048], fd[32];
    string_at(pid, name, relative, sizeof relative);
    if (relative[0] == '/') {
        snprintf(path, size, "%s", relative);
        return;
    }
    if (dirfd == AT_FDCWD) {
        link_of(pid, "cwd", base, sizeof base);
    } else {
        snprintf(fd, sizeof fd, "fd/%d", dirfd);
        link_of(pid, fd, base, sizeof base);
    }
    snprintf(path, size, "%s/%s", base, relative);
}

/* The path that a call changes, and its name; 0 if it changes none. */
static const char *change(pid_t pid, const struct call_info *info, char *path, size_t size) {
    const uint64_t *a = info->arguments;
    char fd[32];
    switch (info->number) {
#ifdef SYS_rename
    case SYS_rename: path_at(pid, AT_FDCWD, a[1], path, size); return "rename";
    case SYS_unlink: path_at(pid, AT_FDCWD, a[0], path, size); return "unlink";
    case SYS_rmdir: path_at(pid, AT_FDCWD, a[0], path, size); return "rmdir";
    case SYS_mkdir: path_at(pid, AT_FDCWD, a[0], path, size); return "mkdir";
    case SYS_symlink: path_at(pid, AT_FDCWD, a[1], path, size); return "symlink";
    case SYS_link: path_at(pid, AT_FDCWD, a[1], path, size); return "link";
    case SYS_chmod: path_at(pid, AT_FDCWD, a[0], path, size); return "chmod";
#endif
#ifdef SYS_renameat
    case SYS_renameat: path_at(pid, (int)a[2], a[3], path, size); return "rename";
#endif
    case SYS_renameat2: path_at(pid, (int)a[2], a[3], path, size); return "rename";
    case SYS_unlinkat: path_at(pid, (int)a[0], a[1], path, size); return a[2] ? "rmdir" : "unlink";
    case SYS_mkdirat: path_at(pid, (int)a[0], a[1], path, size); return "mkdir";
    case SYS_symlinkat: path_at(pid, (int)a[1], a[2], path, size); return "symlink";
    case SYS_linkat: path_at(pid, (int)a[2], a[3], path, size); return "link";
    case SYS_fchmodat: path_at(pid, (int)a[0], a[1], path, size); return "chmod";
    case SYS_fchmod:
        snprintf(fd, sizeof fd, "fd/%d", (int)a[0]);
        link_of(pid, fd, path, size);
        return "chmod";
    case SYS_openat:
        if (!(a[2] & O_CREAT)) return 0;
        path_at(pid, (int)a[0], a[1], path, size);
        return "create";
    default: return 0;
    }
}

/* Whether a path is a directory of this name, or below one. */
static int is_in(const char *path, const char *name) {
    for (const char *at = path; (at = strstr(at, name)); at++) {
        char next = at[strlen(name)];
        if (!next || next == '/') return 1;
    }
    return 0;
}

static int is_counted(const char *path) {
    size_t length = strlen(directory);
    return !strncmp(path, directory, length) && path[length] == '/' && !is_in(path + length, "/.fusee")
        && !is_in(path + length, "/.git");
}

static void entered(pid_t pid, const struct call_info *info) {
    char path[4096];
    const char *name = change(pid, info, path, sizeof path);
    if (!name || !is_counted(path)) return;
    count++;
    fprintf(trace, "%s %s\n", name, path + strlen(directory) + 1);
    fflush(trace);
    if (count == chosen) kill(pid, SIGKILL);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    directory = argv[1];
    trace = fopen(argv[2], "w");
    chosen = atol(argv[3]);
    if (!trace) return 2;
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE
        | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, options)) return 2;
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    int result = 2;
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0) {
            if (errno == EINTR) continue;
            return result;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (pid == child) {
                result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                /* What it left behind ends with this process. */
                return result;
            }
            continue;
        }
        int signal = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            struct call_info info;
            if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY)
                entered(pid, &info);
        } else if (!(status >> 16) && WSTOPSIG(status) != SIGSTOP) {
            signal = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, pid, 0, signal);
    }
}
