# cmake -DTEXT=FILE -DSOURCE=FILE -P embed.cmake: a C++ source with the text of the dispatch kernel.
file(READ ${TEXT} text)
file(WRITE ${SOURCE} "namespace slate::daemon {\nextern const char* const kDispatchPtx;\nconst char* const kDispatchPtx = R\"slate(${text})slate\";\n}  // namespace slate::daemon\n")
