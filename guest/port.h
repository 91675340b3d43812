/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The virtio-serial ports of the guest, by name. */
#ifndef GUEST_PORT_H
#define GUEST_PORT_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* A descriptor to write to the port, -1 if there is none of that name. */
static int port_find(const char *name)
{
	char path[300], found[64];
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	int fd = -1;
	if (!dir)
		return -1;
	while (fd < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", entry->d_name);
		FILE *file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%63s", found) == 1 && !strcmp(found, name)) {
			snprintf(path, sizeof path, "/dev/%s", entry->d_name);
			fd = open(path, O_WRONLY | O_CLOEXEC);
		}
		fclose(file);
	}
	closedir(dir);
	return fd;
}

#endif
