#include "server/cli/run.h"

int main(int argc, char** argv) { return tensormill::cli::run(argc, argv); }
