use std::os::unix::net::UnixStream;

use super::*;

const BOUNDS: Bounds = Bounds { clients: 4, question_bytes: 100, time: Duration::from_secs(3600) };

fn connect(desk: &mut Desk<UnixStream>) -> UnixStream {
    let (here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    desk.admit(there);
    here.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    here
}

fn is_line(text: &[u8]) -> bool {
    text.ends_with(b"\n")
}

fn is_gone(client: &UnixStream) -> bool {
    client.set_nonblocking(true).unwrap();
    matches!((&*client).read(&mut [0]), Ok(0))
}

#[test]
fn a_client_that_asks_is_answered_beside_those_who_say_little() {
    let mut desk = Desk::new(BOUNDS);
    let slow = connect(&mut desk);
    let mut quick = connect(&mut desk);
    (&slow).write_all(b"half a ").unwrap();
    quick.write_all(b"question\n").unwrap();
    let asked = desk.turn(is_line);
    assert_eq!(asked.iter().map(|asked| &asked.question[..]).collect::<Vec<_>>(), [b"question\n"]);
    for one in asked {
        desk.answer(one, b"answer".to_vec());
    }
    assert!(desk.turn(is_line).is_empty());
    let mut text = String::new();
    quick.read_to_string(&mut text).unwrap();
    assert_eq!(text, "answer");
    (&slow).write_all(b"question\n").unwrap();
    assert_eq!(desk.turn(is_line)[0].question, b"half a question\n");
}

#[test]
fn an_answer_that_nobody_takes_keeps_nobody_waiting() {
    let mut desk = Desk::new(BOUNDS);
    let [lazy, mut quick] = [(); 2].map(|()| connect(&mut desk));
    (&lazy).write_all(b"long\n").unwrap();
    for asked in desk.turn(is_line) {
        desk.answer(asked, vec![7; 8 << 20]);
    }
    desk.turn(is_line);
    quick.write_all(b"short\n").unwrap();
    assert_eq!(desk.turn(is_line).len(), 1);
    // It has all of it once it takes it.
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        (&lazy).read_to_end(&mut bytes).map(|_| bytes)
    });
    let nobody = UnixStream::pair().unwrap();
    while !reader.is_finished() && !desk.clients.is_empty() {
        desk.wait(nobody.0.as_fd()).unwrap();
        desk.turn(is_line);
    }
    assert_eq!(reader.join().unwrap().unwrap(), vec![7; 8 << 20]);
}

#[test]
fn the_oldest_of_too_many_is_dropped_and_one_that_asks_at_once_is_not() {
    let mut desk = Desk::new(BOUNDS);
    let silent: Vec<UnixStream> = (0..9).map(|_| connect(&mut desk)).collect();
    let mut quick = connect(&mut desk);
    quick.write_all(b"question\n").unwrap();
    assert_eq!(desk.turn(is_line).len(), 1);
    assert_eq!(desk.clients.len(), 4);
    assert_eq!(
        silent.iter().map(is_gone).collect::<Vec<_>>(),
        [true, true, true, true, true, false, false, false, false]
    );
}

#[test]
fn time_and_length_of_a_question_are_bounded() {
    let mut desk = Desk::new(Bounds { time: Duration::ZERO, ..BOUNDS });
    let late = connect(&mut desk);
    (&late).write_all(b"a byte").unwrap();
    let mut in_time = connect(&mut desk);
    in_time.write_all(b"late, but whole\n").unwrap();
    assert_eq!(desk.turn(is_line).len(), 1, "what has come in the meantime counts");
    assert!(is_gone(&late));
    let mut desk = Desk::new(BOUNDS);
    let long = connect(&mut desk);
    (&long).write_all(&[b'a'; 200]).unwrap();
    assert!(desk.turn(is_line).is_empty() && is_gone(&long));
}
