//! The repository holds no path of the machine that it was written on, and its pages link to files and headings that
//! exist.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files of the repository but what building and testing leaves behind.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_left_behind = name == ".git"
                || name == ".work"
                || name == "__pycache__"
                || name.starts_with(".venv")
                || name.starts_with("target");
            if is_left_behind {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    // Taken apart, so that this file is clean too.
    let personal = ["home", "root", "Users", "work", "mnt"].map(|folder| format!("/{folder}/"));
    let mut found = Vec::new();
    for file in files() {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for start in &personal {
                if let Some(at) = line.find(start.as_str())
                    && begins_a_path(&line[..at])
                {
                    let place = file.strip_prefix(root()).unwrap().display();
                    found.push(format!("{place}:{}: {start}", number + 1));
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "paths of one machine:\n  {}",
        found.join("\n  ")
    );
}

/// Whether what comes next is the start of an absolute path and not the middle of a longer one.
fn begins_a_path(before: &str) -> bool {
    before
        .chars()
        .next_back()
        .is_none_or(|character| !character.is_alphanumeric() && !"./-_$}".contains(character))
}

#[test]
fn pages_link_to_files_that_exist() {
    let mut broken = Vec::new();
    let mut links = 0;
    for page in files() {
        if page.extension().is_none_or(|extension| extension != "md")
            || page.starts_with(root().join("tests"))
        {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1) {
            let target = target.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            links += 1;
            if !page.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(links > 5, "only {links} links found");
    assert!(
        broken.is_empty(),
        "broken links:\n  {}",
        broken.join("\n  ")
    );
}

/// The anchor that a page of Markdown gives a heading.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|&character| character.is_alphanumeric() || " -_".contains(character))
        .map(|character| if character == ' ' { '-' } else { character })
        .collect()
}

#[test]
fn links_into_a_page_meet_a_heading() {
    let mut broken = Vec::new();
    let mut links = 0;
    for page in files() {
        if page.extension().is_none_or(|extension| extension != "md")
            || page.starts_with(root().join("tests"))
        {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap_or_default();
            let Some((file, fragment)) = target.split_once('#') else {
                continue;
            };
            if file.contains("://") {
                continue;
            }
            links += 1;
            let linked = if file.is_empty() {
                text.clone()
            } else {
                fs::read_to_string(page.parent().unwrap().join(file)).unwrap_or_default()
            };
            let met = linked
                .lines()
                .filter(|line| line.starts_with('#'))
                .any(|line| anchor(line) == fragment);
            if !met {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(links > 5, "only {links} links found");
    assert!(
        broken.is_empty(),
        "links to no heading:\n  {}",
        broken.join("\n  ")
    );
}
