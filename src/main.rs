fn main() -> std::process::ExitCode {
    nandscope::cli::main()
}
