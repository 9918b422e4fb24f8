"""slate.h through slated: the two programs of docs/slate_h.md, compiled as they stand there, and the cases of
slate_h_cases.cc. Needs a libnvrtc, as part of the toolkit that the build needs."""

import os
import re
import subprocess
import unittest

from harness import BUILD, SlateTestCase, binary

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
COMPILERS = {"c": os.environ.get("SLATE_TEST_CC", "cc"), "cpp": os.environ.get("SLATE_TEST_CXX", "c++")}
STANDARDS = {"c": "-std=c99", "cpp": "-std=c++17"}
FLAGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"] + os.environ.get("SLATE_TEST_FLAGS", "").split()


def document():
    """[(language, text)] of the code in docs/slate_h.md."""
    with open(os.path.join(ROOT, "docs/slate_h.md")) as file:
        return re.findall(r"^```(\w+)\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)


class SlateHTest(SlateTestCase):
    def setUp(self):
        self.slated = self.daemon()
        self.cache = os.path.join(self.slated.root, "cache")
        self.slated.environment["SLATE_CACHE_DIR"] = self.cache

    def tearDown(self):
        self.slated.wait_until_idle()
        self.slated.stop()

    def compile(self, language, text):
        source = os.path.join(self.slated.root, "example." + {"c": "c", "cpp": "cc"}[language])
        with open(source, "w") as file:
            file.write(text)
        program = os.path.join(self.slated.root, "example")
        library = os.path.join(BUILD, "lib")
        command = [COMPILERS[language], STANDARDS[language], *FLAGS, "-I", os.path.join(ROOT, "client"), "-isystem",
                   os.environ.get("SLATE_TEST_CUDA_INCLUDE", "/usr/local/cuda/include"), source, "-L", library,
                   "-Wl,-rpath," + library, "-lslate", "-o", program]
        made = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        return program

    def example(self, language):
        texts = [text for kind, text in document() if kind == language]
        self.assertEqual(len(texts), 1, "one complete program in %s" % language)
        code, out, err = self.slated.run([self.compile(language, texts[0])])
        self.assertEqual(code, 0, out + err)
        return out

    def case(self, *words, environment=None):
        if environment:
            self.slated.environment.update(environment)
        code, out, err = self.slated.run([binary("slate_h_cases"), *words])
        self.assertEqual(code, 0, out + err)
        return out

    def test_the_c_program_of_the_document_does_what_it_says(self):
        self.assertEqual(self.example("c"), "values[999] = 1998\n")

    def test_the_cpp_program_of_the_document_prints_what_stands_there(self):
        printed = [text for kind, text in document() if kind == "text"]
        self.assertEqual([self.example("cpp")], printed)

    def test_ptx_is_loaded_launched_and_right(self):
        self.case("ptx_module")

    def test_ptx_that_does_not_assemble_is_refused_with_the_reason(self):
        self.case("broken_ptx")

    def test_templates_are_instantiated_launched_and_right(self):
        self.case("source_module")

    def test_a_syntax_error_names_the_users_file_and_line(self):
        self.assertRegex(self.case("syntax_error"), r"mine\.cu\(4\): error: .*undeclared_thing")

    def test_a_wrong_number_or_size_of_arguments_is_refused_by_name(self):
        self.assertEqual(
            self.case("argument_count").splitlines(),
            ["kernel number takes 3 arguments, not 2",
             "argument 2 of kernel number has 8 bytes, its parameter has 4"])

    def test_launches_keep_the_order_of_a_created_stream(self):
        self.case("created_stream")

    def test_a_variable_is_read_and_written_with_cudaMemcpy(self):
        self.case("global_variable")

    def test_what_is_queued_runs_although_its_module_is_unloaded(self):
        self.case("unload_while_queued")

    def test_a_source_file_finds_the_headers_beside_it(self):
        with open(os.path.join(self.slated.root, "offset.h"), "w") as file:
            file.write("#define OFFSET 5\n")
        path = os.path.join(self.slated.root, "number.cu")
        with open(path, "w") as file:
            file.write('#include "offset.h"\nextern "C" __global__ void number(int* out, int step, int count) {\n'
                       "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                       "  if (i < count) out[i] = i + step + OFFSET;\n}\n")
        self.assertEqual(self.case("file", path), "112\n")
        with open(os.path.join(self.slated.root, "offset.h"), "w") as file:
            file.write("#define OFFSET 6\n")
        self.assertEqual(self.case("file", path), "113\n", "the cache has to notice a changed header")

    def test_source_is_compiled_once_and_then_comes_from_the_users_cache(self):
        def entries():
            # On a GPU slated keeps machine code beside it.
            return sorted(name for _, _, names in os.walk(os.path.join(self.cache, "source")) for name in names)

        self.case("source_module")
        first = entries()
        self.assertEqual(len(first), 1, "one entry for one source")
        self.case("source_module")
        self.assertEqual(entries(), first)

    def test_all_works_where_the_cache_does_not(self):
        self.case("source_module", environment={"SLATE_CACHE_DIR": "/dev/null/cache"})


if __name__ == "__main__":
    unittest.main()
