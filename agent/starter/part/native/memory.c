/* Memory that is given back as a whole: the shepherd runs as long as its user has jobs. */
#include <stdlib.h>

#include "native.h"

#define BLOCK ((size_t)16 << 10)

struct block {
    struct block *next;
    size_t size, used;
    max_align_t data[];
};

void *some(struct memory *memory, size_t size)
{
    struct block *block = memory->blocks;
    size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!block || block->size - block->used < size) {
        size_t room = size > BLOCK ? size : BLOCK;
        block = malloc(sizeof *block + room);
        if (!block)
            return NULL;
        *block = (struct block){memory->blocks, room, 0};
        memory->blocks = block;
    }
    void *found = (char *)block->data + block->used;
    block->used += size;
    return found;
}

/* With ``keep`` a block of the usual size stays: the next part takes it. */
void give_back(struct memory *memory, bool keep)
{
    struct block *block = memory->blocks;
    memory->blocks = NULL;
    while (block) {
        struct block *next = block->next;
        if (keep && !next && block->size == BLOCK) {
            block->used = 0;
            memory->blocks = block;
        } else
            free(block);
        block = next;
    }
}
