/* What the parts of the front share. */
#include <stdint.h>

extern char **environ;

/* identity.c */
int read_at_start(const char *entry);
uint32_t installation(const char *server);
uint64_t identity(void);
int own_process_needed(char **words);

/* servers.c */
int folder_of_servers(void);
int connected(int folder, const char *socket_name);
void pass_by(int folder, const char *socket_name);
void start_server(int folder, const char *socket_name, const char *server);
