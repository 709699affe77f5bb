#include "server/cli/cli.h"

int main(int argc, char** argv) { return tensormill::cli::run(argc, argv); }
