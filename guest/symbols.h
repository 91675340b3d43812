/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a profile needs to know of the guest: where its kernel's functions are, those of loaded BPF programs among them, and
 * from which source lines the instructions of BPF programs come. Text:
 *
 *   ADDRESS TYPE NAME [MODULE]       as in /proc/kallsyms
 *   line ADDRESS FILE:LINE TEXT      from this address on, of a BPF program; TEXT is the source line */
#ifndef GUEST_SYMBOLS_H
#define GUEST_SYMBOLS_H

#include <inttypes.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int symbols_bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static bool symbols_info(int fd, void *info, uint32_t size)
{
	union bpf_attr attr = {.info = {.bpf_fd = (uint32_t)fd, .info_len = size, .info = (uintptr_t)info}};
	return !symbols_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* The strings of a BTF object, in memory that is the caller's; `length` of them. NULL if there are none. */
static char *symbols_strings(uint32_t btf, uint32_t *length)
{
	/* struct btf_header, whose header not every machine has */
	struct {
		uint16_t magic;
		uint8_t version, flags;
		uint32_t header_length, type_at, type_length, string_at, string_length;
	} *header;
	struct bpf_btf_info info = {0};
	union bpf_attr by_id = {.btf_id = btf};
	char *strings = NULL;
	int fd = symbols_bpf(BPF_BTF_GET_FD_BY_ID, &by_id);
	if (fd < 0)
		return NULL;
	if (symbols_info(fd, &info, sizeof info) && info.btf_size > sizeof *header && (header = malloc(info.btf_size))) {
		uint32_t size = info.btf_size;
		info = (struct bpf_btf_info){.btf = (uintptr_t)header, .btf_size = size};
		if (symbols_info(fd, &info, sizeof info)) {
			uint64_t from = (uint64_t)header->header_length + header->string_at;
			if (from + header->string_length <= size && (strings = calloc(1, header->string_length + 1))) {
				memcpy(strings, (char *)header + from, header->string_length);
				*length = header->string_length;
			}
		}
		free(header);
	}
	close(fd);
	return strings;
}

/* The lines of one BPF program and its functions. */
static void symbols_lines(FILE *out, int program)
{
	struct bpf_prog_info info = {0};
	uint32_t length = 0;
	if (!symbols_info(program, &info, sizeof info) || !info.nr_jited_line_info || !info.btf_id)
		return;
	uint32_t n = info.nr_jited_line_info, btf = info.btf_id;
	struct bpf_line_info *lines = calloc(n, sizeof *lines);
	uint64_t *addresses = calloc(n, sizeof *addresses);
	char *strings = symbols_strings(btf, &length);
	info = (struct bpf_prog_info){
	    .line_info = (uintptr_t)lines,
	    .nr_line_info = n,
	    .line_info_rec_size = sizeof *lines,
	    .jited_line_info = (uintptr_t)addresses,
	    .nr_jited_line_info = n,
	    .jited_line_info_rec_size = sizeof *addresses,
	};
	if (lines && addresses && strings && symbols_info(program, &info, sizeof info)) {
		for (uint32_t i = 0; i < n && i < info.nr_line_info && i < info.nr_jited_line_info; i++) {
			if (!addresses[i] || lines[i].file_name_off >= length || lines[i].line_off >= length)
				continue;
			const char *file = strings + lines[i].file_name_off, *text = strings + lines[i].line_off;
			fprintf(out, "line %" PRIx64 " %s:%u %s\n", addresses[i], file,
				BPF_LINE_INFO_LINE_NUM(lines[i].line_col), text + strspn(text, " \t"));
		}
	}
	free(strings);
	free(addresses);
	free(lines);
}

/* Write everything to `fd`, and close it. */
static void symbols_write(int fd)
{
	char line[4096];
	FILE *out = fdopen(fd, "w"), *names = fopen("/proc/kallsyms", "re");
	while (out && names && fgets(line, sizeof line, names))
		fputs(line, out);
	if (names)
		fclose(names);
	union bpf_attr attr = {0};
	while (out && !symbols_bpf(BPF_PROG_GET_NEXT_ID, &attr)) {
		uint32_t id = attr.next_id;
		union bpf_attr by_id = {.prog_id = id};
		int program = symbols_bpf(BPF_PROG_GET_FD_BY_ID, &by_id);
		if (program >= 0) {
			symbols_lines(out, program);
			close(program);
		}
		attr = (union bpf_attr){.start_id = id};
	}
	if (out)
		fclose(out);
}

#endif
