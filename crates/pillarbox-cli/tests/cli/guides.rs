//! The command lines in the guides are commands that there are: each block of shell is run with a stand-in for every program, and
//! what ours was told is handed to its own parser.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

#[path = "../../../pillarbox-guides/blocks.rs"]
mod blocks;

use blocks::{Block, blocks, pages, root};

/// Programs of others. What they are told is theirs to judge.
const OTHERS: [&str; 25] = [
    "apt-get",
    "bash",
    "chmod",
    "curl",
    "docker",
    "install",
    "journalctl",
    "kafka-topics.sh",
    "kcat",
    "kubectl",
    "openssl",
    "mosquitto_sub",
    "nats",
    "nats-server",
    "pidof",
    "podman",
    "psql",
    "python3",
    "rabbitmqadmin",
    "rabbitmqctl",
    "redis-cli",
    "sha256sum",
    "skopeo",
    "tar",
    "sqlite3",
];

/// Writes down what it was told: a word a line, and an empty line at the end.
const RECORDER: &str = "#!/bin/bash\nprintf '%s\\n' \"${0##*/}\" \"$@\" '' >>\"$RECORD\"\n";

/// The shell that `bash` names in a block must not be the one that runs it.
const SHELL: &str = "/bin/bash";

/// The arguments that a block gives our programs; an error if it names an unknown program.
fn told(block: &Block) -> Result<Vec<Vec<String>>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = folder.path().join("programs");
    fs::create_dir_all(&programs).expect("a folder");
    fs::create_dir(folder.path().join(".ci")).expect("a folder");
    fs::create_dir(folder.path().join("scripts")).expect("a folder");
    let write = |path: &Path, text: &str| {
        fs::write(path, text).expect("written");
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("it may be run");
    };
    for program in ["cargo", "pillarbox"] {
        write(&programs.join(program), RECORDER);
    }
    for program in OTHERS {
        symlink("/bin/true", programs.join(program)).expect("linked");
    }
    for script in fs::read_dir(root().join("scripts")).expect("the scripts") {
        write(&folder.path().join("scripts").join(script.expect("a script").file_name()), "#!/bin/bash\n");
    }
    let record = folder.path().join("record");
    fs::write(&record, "").expect("written");
    let script = format!(
        "kill() {{ :; }}; systemctl() {{ :; }}; set -u; URL=postgres://db/shop VERSION=0.1.0\n{}\nwait",
        block.text
    );
    let output = Command::new(SHELL)
        .args(["-c", &script])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", &programs)
        .env("RECORD", &record)
        .stdin(Stdio::null())
        .output()
        .expect("this test needs bash");
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !complaints.is_empty() {
        return Err(complaints.into_owned());
    }
    let text = fs::read_to_string(&record).expect("the record");
    let commands = text.split_terminator("\n\n").map(|command| command.lines().map(str::to_owned).collect());
    Ok(commands.collect())
}

/// The complaint about a command line of ours: asked for help at the end, the parser reads all that stands before.
fn refused(arguments: &[String]) -> Option<String> {
    let mut arguments = arguments.to_vec();
    arguments.push("--help".to_owned());
    let output = Command::new(env!("CARGO_BIN_EXE_pillarbox")).args(&arguments).output().expect("starts");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The complaint about a command line of cargo: a package that this workspace lacks.
fn unknown_package(arguments: &[String], packages: &BTreeSet<String>) -> Option<String> {
    let values = |names: &[&str]| {
        let is_name = |argument: &&[String]| names.contains(&argument[0].as_str());
        arguments.windows(2).filter(is_name).map(|pair| pair[1].clone()).collect::<Vec<_>>()
    };
    values(&["-p", "--package"]).into_iter().find(|package| !packages.contains(package))
}

#[test]
fn every_command_line_is_one() {
    let mut packages = BTreeSet::new();
    for folder in ["adapters", "crates", "examples", "publishers", "stores"] {
        for member in fs::read_dir(root().join(folder)).expect("a folder") {
            let manifest = member.expect("a member").path().join("Cargo.toml");
            let Ok(manifest) = fs::read_to_string(manifest) else { continue };
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
            packages.insert(name.expect("a name").to_owned());
        }
    }
    let (mut ours, mut problems) = (0, Vec::new());
    for page in pages().expect("the pages") {
        for block in blocks(&page).expect("its blocks").into_iter().filter(|block| block.language == "sh") {
            let at = format!("{page}:{}", block.line);
            match told(&block) {
                Err(complaints) => problems.push(format!("{at}: {complaints}")),
                Ok(commands) => {
                    for command in commands {
                        let (program, arguments) = command.split_first().expect("a program");
                        let problem = if program == "cargo" {
                            unknown_package(arguments, &packages)
                        } else if arguments.first().is_some_and(|first| first == "bench") {
                            None // the rest is for pillarbox-bench, which is not built here
                        } else {
                            ours += 1;
                            refused(arguments)
                        };
                        problems.extend(problem.map(|problem| format!("{at}: {}: {problem}", command.join(" "))));
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(ours > 20, "only {ours} command lines of ours were found");
}
