//! Which format a text is in.

use super::Format;

/// What a parameter file of Vdbench begins with.
const VDBENCH: [&str; 11] =
    ["sd", "wd", "rd", "hd", "fsd", "fwd", "compratio", "data_errors", "debug", "dedupratio", "messagescan"];

/// The format that a text's first telling line shows, if any does.
#[must_use]
pub fn detect(text: &str) -> Option<Format> {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()).take(200) {
        let lower: String = line.chars().take(80).collect::<String>().to_ascii_lowercase();
        if lower.starts_with('{') {
            return Some(Format::Json);
        }
        if lower.starts_with("version ") || lower.starts_with('\'') {
            return Some(Format::Icf);
        }
        if lower.starts_with("<?xml") || lower.starts_with("<profile") || lower.starts_with("<results") {
            return Some(Format::Diskspd);
        }
        if lower.starts_with('[') {
            return Some(Format::Fio);
        }
        if VDBENCH.iter().any(|name| lower.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))) {
            return Some(Format::Vdbench);
        }
        let command = lower.trim_start_matches('"').split([' ', '"']).next().unwrap_or("");
        let program = command.rsplit(['/', '\\']).next().unwrap_or("");
        if program == "diskspd" || program == "diskspd.exe" || lower.starts_with("-b") {
            return Some(Format::Diskspd);
        }
        if program == "fio" && lower.contains(" -") {
            return Some(Format::FioCommand);
        }
        // Comments of fio and of scripts, and a script's other lines, say nothing.
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_show_in_their_first_lines() {
        for (text, format) in [
            ("Version 1.1.0 \n'TEST SETUP ====", Some(Format::Icf)),
            ("; a comment\n# another\n[global]\nrw=read", Some(Format::Fio)),
            ("@echo off\r\n\"C:\\Tools\\diskspd.exe\" -b4K -d10 x.dat", Some(Format::Diskspd)),
            ("-b8K -d30 -o4 -t8 -h -r -w25 testfile.dat", Some(Format::Diskspd)),
            ("#!/bin/sh\nfio -name=a -rw=read\n", Some(Format::FioCommand)),
            ("* made by a tool\ndebug=86\nsd=sd1,lun=/dev/sda\n", Some(Format::Vdbench)),
            ("<Profile><TimeSpans/></Profile>", Some(Format::Diskspd)),
            ("\n  {\"format\": 1}", Some(Format::Json)),
            ("hello", None),
            ("", None),
        ] {
            assert_eq!(detect(text), format, "{text}");
        }
    }
}
