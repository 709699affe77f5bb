/// What the leak check of the address sanitizer leaves out. The threads of the pool of cpprestsdk
/// (rest_client_test.cc) end after OpenSSL's own clean-up at exit, so the error queue of each of them stays.
/// Only unwind tables lead from the allocation back to the library.
extern "C" {

// Names of the sanitizer. NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
const char* __lsan_default_suppressions();
const char* __asan_default_options();

const char* __lsan_default_suppressions() { return "leak:libcpprest.so\n"; }
const char* __asan_default_options() { return "fast_unwind_on_malloc=0"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}
