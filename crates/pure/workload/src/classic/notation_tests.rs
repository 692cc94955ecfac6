use super::*;
use proptest::prelude::*;

#[test]
fn names_alone_are_the_defaults() {
    assert_eq!(parse_workload("memory").unwrap(), WorkloadSpec::new(Workload::Memory(MemorySpec::default())));
    assert_eq!(parse_workload("cpu").unwrap(), WorkloadSpec::new(Workload::Cpu(CpuSpec::default())));
}

#[test]
fn options_are_read() {
    let spec = parse_workload("memory:threads=2,array=64MiB,stores=non-temporal,runs=3,drop-caches").unwrap();
    assert_eq!((spec.runs, spec.drop_caches), (3, true));
    let memory = MemorySpec {
        threads: 2,
        array_bytes: 64 << 20,
        stores: Stores::NonTemporal,
        ..MemorySpec::default()
    };
    assert_eq!(spec.workload, Workload::Memory(memory));
}

#[test]
fn what_is_wrong_is_named() {
    let message = |text| parse_workload(text).unwrap_err().to_string();
    assert!(message("memroy").contains("memory, cpu"));
    assert!(message("memory:kernels=sha").contains("threads, array"));
    assert!(message("cpu:kernels=shar").contains("sha"));
    assert!(message("cpu:threads=many").contains("threads=many"));
    assert!(message("cpu:threads=9999").contains("1024"));
    assert!(message("memory:array=1").contains("64 KiB"));
    assert!(message("memory:ballast=x").contains("ballast=x"));
    assert!(message("cpu:runs=0").contains("runs=0"));
}

proptest! {
    #[test]
    fn a_written_notation_can_be_read(
        memory: bool,
        threads in 0u32..=1024,
        numbers in (1u64..1000, 1u32..100, 0u64..9, any::<u64>()),
        stores in prop::sample::select(STORES.map(|(_, stores)| stores).to_vec()),
        time in prop::option::of(1u64..1_000_000),
        drop_caches: bool,
        [sample, count]: [bool; 2],
    ) {
        let (milliseconds, runs, mebibytes, seed) = numbers;
        let kernel_ns = milliseconds * 1_000_000;
        let workload = if memory {
            Workload::Memory(MemorySpec { threads, array_bytes: mebibytes << 20, kernel_ns, stores })
        } else {
            Workload::Cpu(CpuSpec { threads, kernel_ns, kernels: vec![CpuKernel::ALL[0]; 2] })
        };
        let spec = WorkloadSpec {
            warm_ups: runs % 3,
            runs,
            seed,
            drop_caches,
            sample,
            count,
            time_ns: time.map(|time| time * 1_000_000),
            ballast_bytes: mebibytes << 20,
            ..WorkloadSpec::new(workload)
        };
        prop_assert_eq!(parse_workload(&spec.to_string()), Ok(spec));
    }

    #[test]
    fn no_text_panics(text in "(memory|cpu)?:?[a-z=,+0-9 ]{0,40}") {
        let _ = parse_workload(&text);
    }
}

#[test]
fn a_program_has_its_words_behind_the_options() {
    let text = r"command:runs=2,limit=9s -- cmd.exe /c 'C:\a b\x.f' -- y";
    let spec = parse_workload(text).unwrap();
    let Workload::Command(command) = &spec.workload else { panic!("{spec:?}") };
    assert_eq!(command.words, ["cmd.exe", "/c", r"C:\a b\x.f", "--", "y"]);
    assert_eq!((spec.runs, spec.limit_ns), (2, 9_000_000_000));
    assert_eq!(parse_workload(&spec.to_string()).unwrap(), spec, "{spec}");
    assert_eq!(parse_workload("command -- true").unwrap().to_string(), "command -- true");
    for (text, word) in [
        ("command", "no program is named"),
        ("command:true", "-- PROGRAM"),
        ("command -- 'x", "quotation"),
        ("command --  ", "command"),
        ("command:size=1 -- x", "size"),
        ("commands -- x", "is no workload"),
    ] {
        let why = parse_workload(text).unwrap_err().to_string();
        assert!(why.contains(word), "{text}: {why}");
    }
}
