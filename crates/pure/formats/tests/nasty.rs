//! Inputs made to hurt: each importer ends with an answer, whatever it is.

use virtbench_formats::{Format, ImportError, MAX_FILE_BYTES, import, trace::read_trace};

fn corpus() -> Vec<Vec<u8>> {
    let fill = |piece: &str| piece.repeat(MAX_FILE_BYTES / piece.len()).into_bytes();
    let mut corpus: Vec<Vec<u8>> =
        ["a", "[", "{", "'", "\"", "-", "\n", ",", "=", "9", ":", " ", ";", "é", "\u{feff}"]
            .iter()
            .map(|piece| fill(piece))
            .collect();
    corpus.extend([
        fill("[a]\n"),
        fill("[global]\nbs=4k\n"),
        format!("[a]\n{}", "x=1\n".repeat(200_000)).into_bytes(),
        format!("[a]\nbssplit={}", "4k/:".repeat(200_000)).into_bytes(),
        format!("[a]\ncpus_allowed={}", "0-4095,".repeat(100_000)).into_bytes(),
        format!("[a]\ncpus_allowed={}", "0,".repeat(400_000)).into_bytes(),
        b"[a]\nbs=18446744073709551615\nnumjobs=4294967295\niodepth=4294967295\nsize=16383p\n".to_vec(),
        b"[a]\nrate_iops=18446744073709551615\nnumjobs=256\nthinktime=18446744073709551615\n".to_vec(),
        b"[a]\nrw=write:18446744073709551615\nbs=1\nruntime=1\n".to_vec(),
        b"[a]\nnumjobs=3\noffset_increment=16383p\noffset=16383p\nss=iops:1%\nss_interval=213503d\nloops=4294967295\n".to_vec(),
        b"[a]\nzonemode=strided\nzonesize=16383p\nzoneskip=16383p\nio_size=100000000%\nstartdelay=213503d\n".to_vec(),
        format!("[global]\nrw=randread\nbsrange=1-255\nrandom_distribution=zoned:{}28/28\n{}", "1/1:".repeat(72), "[a]\n".repeat(255)).into_bytes(),
        b"include a.fio\n[a]\ninclude a.fio\ninclude=a.fio\n".to_vec(),
        b"[a]\nfilename=\0\n".to_vec(),
        vec![0; MAX_FILE_BYTES],
        vec![0xff; MAX_FILE_BYTES],
        fill("diskspd -b4K x\n"),
        fill("diskspd x ^\n"),
        format!("diskspd {}", "x ".repeat(500_000)).into_bytes(),
        b"diskspd -b18446744073709551615 -c18446744073709551615T -g4294967295 -F4294967295 -o4294967295 x\n".to_vec(),
        b"diskspd -s18446744073709551615 -b4294967296b x\n".to_vec(),
        fill("'TEST SETUP\n"),
        fill("'ACCESS SPECIFICATIONS\n'Access specification name,default assignment\nx,NONE\n"),
        format!("'ACCESS SPECIFICATIONS\n'Access specification name,x\na,b\n'size,% of size,% reads,% random\n{}", "1,1,1,1\n".repeat(100_000)).into_bytes(),
        format!("'MANAGER LIST\n{}", "'Worker\nw\n'End worker\n".repeat(40_000)).into_bytes(),
        format!("'MANAGER LIST\n'Worker\nw\n'Assigned access specs\n{}", "s\n".repeat(400_000)).into_bytes(),
        b"'TEST SETUP\n'Run Time\n4294967295 4294967295 4294967295\n'Ramp Up Time (s)\n18446744073709551615\n'END test setup\n".to_vec(),
        b"'ACCESS SPECIFICATIONS\n'Access specification name,x\na,b\n'size,% of size,% reads,% random,delay,burst,align,reply\n18446744073709551615,NaN,inf,-inf,18446744073709551615,4294967295,18446744073709551615,1\n'END access specifications\n".to_vec(),
        format!("{{\"format\":1,\"jobs\":{}", "[".repeat(500_000)).into_bytes(),
        format!("{{\"format\":1,\"jobs\":{}1e999{}}}", "[".repeat(100), "]".repeat(100)).into_bytes(),
        b"{\"format\":99999999999999999999,\"jobs\":[]}".to_vec(),
    ]);
    corpus
}

#[test]
fn every_importer_survives_the_corpus() {
    let formats = [
        None,
        Some(Format::Icf),
        Some(Format::Fio),
        Some(Format::Diskspd),
        Some(Format::Vdbench),
        Some(Format::Json),
    ];
    for (index, bytes) in corpus().iter().enumerate() {
        // A lenient import goes the farthest.
        for (format, lenient) in formats.into_iter().map(|format| (format, true)).chain([(None, false)]) {
            match import(bytes, format, lenient) {
                Ok(load) => assert!(load.jobs.iter().all(|job| job.load.validate().is_ok()), "input {index}"),
                Err(error) => {
                    assert!(error.to_string().len() < 40_000, "input {index}: a message no one can read");
                }
            }
        }
    }
}

#[test]
fn trace_readers_survive_the_corpus() {
    for bytes in corpus() {
        for head in ["", "fio version 2 iolog\n", "fio version 3 iolog\n", "time_ns,offset,size,operation\n"]
        {
            let _ = read_trace([head.as_bytes(), &bytes].concat().as_slice());
        }
    }
}

#[test]
fn a_file_beyond_the_limit_is_refused_unread() {
    let bytes = vec![b'#'; MAX_FILE_BYTES + 1];
    assert!(matches!(import(&bytes, None, true), Err(ImportError::TooLarge { .. })));
}
