//! The command line, as documents: `tests/cli/*.md` say what a command prints and how it ends.

#[test]
fn documents_are_true() {
    trycmd::TestCases::new().case("tests/cli/*.md");
}
