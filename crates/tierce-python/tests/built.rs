//! The module that `scripts/python` takes is built with the tests of the workspace, and is one of Python's.

#[test]
fn the_module_is_one_of_pythons() {
    let program = std::env::current_exe().unwrap();
    let module = std::fs::read(program.with_file_name("lib_native.so")).unwrap();
    let name = b"PyInit__native\0";
    assert!(module.windows(name.len()).any(|bytes| bytes == name));
}
