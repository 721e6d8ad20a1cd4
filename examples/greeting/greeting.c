/* Every rank greets rank 0, which prints the greetings in the order of the ranks.
 *
 *     mpicc -o greeting greeting.c && bsub -a mpi -n 4 -o out.%J ./greeting
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 100, TAG = 0 };

int main(int argc, char *argv[])
{
    char greeting[LONGEST];
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(greeting, LONGEST, "Greetings from process %d of %d!", rank, size);
    if (rank != 0) {
        MPI_Send(greeting, (int)strlen(greeting) + 1, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
    } else {
        puts(greeting);
        for (int source = 1; source < size; source++) {
            MPI_Recv(greeting, LONGEST, MPI_CHAR, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            puts(greeting);
        }
    }
    MPI_Finalize();
    return 0;
}
