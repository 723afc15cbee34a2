/* What was written says how far the input was read: each row is one write, and a second run begins after the last one. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char line[100], name[40];
    int out = open("store/all.txt", O_RDWR | O_CREAT | O_APPEND, 0644), there = 0;
    char byte;
    while (read(out, &byte, 1) == 1)
        there += byte == '\n';
    for (int part = 1; part <= 3; part++) {
        snprintf(name, sizeof name, "input/part-%d", part);
        FILE *in = fopen(name, "r");
        while (in && fgets(line, sizeof line, in))
            if (there-- <= 0 && write(out, line, strlen(line)) < 0)
                return 1;
        if (in)
            fclose(in);
    }
    return 0;
}
