//! The scenarios, written once for every peer; the same as those of the driver in Zig.

use crate::payload;
use crate::peers::{End, Peer};
use crate::protocol::{Body, Measured, Scenario};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WARM_UP: u32 = 0;
const MEASURE: u32 = 1;
const STOP: u32 = 2;

/// On lines of its own, so that whoever only looks never waits for it.
#[repr(align(128))]
struct Board {
    command: AtomicU32,
    last: Last,
}

#[repr(align(128))]
struct Last(AtomicU64);

impl Board {
    fn new() -> Arc<Board> {
        Arc::new(Board {
            command: AtomicU32::new(WARM_UP),
            last: Last(AtomicU64::new(u64::MAX)),
        })
    }

    fn tell(&self, command: u32) {
        self.command.store(command, Ordering::Release);
    }
}

/// What the calling thread has used so far.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu_ns: u64,
    sleeps: u64,
}

impl Usage {
    fn current() -> Usage {
        // SAFETY: both are plain numbers, which the calls fill in.
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            Usage {
                cpu_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
                sleeps: usage.ru_nvcsw as u64,
            }
        }
    }

    fn since(self) -> Usage {
        let after = Usage::current();
        Usage {
            cpu_ns: after.cpu_ns - self.cpu_ns,
            sleeps: after.sleeps - self.sleeps,
        }
    }
}

/// What the other end keeps to know what the measuring end wants.
struct Listener {
    board: Arc<Board>,
    seen: u32,
    before: Usage,
    used: Usage,
}

impl Listener {
    fn new(board: Arc<Board>) -> Listener {
        Listener {
            board,
            seen: WARM_UP,
            before: Usage::default(),
            used: Usage::default(),
        }
    }

    /// Returns false when the other end is to stop.
    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        let told = self.board.command.load(Ordering::Relaxed);
        told == self.seen || self.hear(told)
    }

    #[cold]
    #[inline(never)]
    fn hear(&mut self, told: u32) -> bool {
        self.seen = told;
        if told == MEASURE {
            self.before = Usage::current();
        } else {
            self.used = self.before.since();
        }
        told != STOP
    }
}

/// Runs a scenario with messages of `N` bytes.
pub fn run<const N: usize, P: Peer<N>>(scenario: &Scenario) -> Body {
    let (own, other) = match P::open(scenario) {
        Ok(pair) => pair,
        Err(why) => return Body::Decline(why),
    };
    // Whatever hangs is ended by the kernel.
    // SAFETY: it only sets a timer.
    unsafe { libc::alarm(30 + ((scenario.warmup_ms + scenario.duration_ms) / 500) as u32) };
    let body = match scenario.name.as_str() {
        "echo" => Body::Result(echo(scenario, own, other)),
        "stream" => Body::Result(stream::<N, _>(scenario, own, other)),
        "burst" => Body::Result(burst::<N, _>(scenario, own, other)),
        _ => Body::Decline("this driver does not play that scenario".into()),
    };
    // SAFETY: as above.
    unsafe { libc::alarm(0) };
    body
}

fn measured(count: u64, size: usize, elapsed: Duration, own: Usage, other: Usage) -> Measured {
    Measured {
        count,
        elapsed_ns: elapsed.as_nanos() as u64,
        latency: None,
        sleeps: own.sleeps + other.sleeps,
        cpu_ms: (own.cpu_ns + other.cpu_ns) as f64 / 1e6,
        bytes: count * size as u64,
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("fixed bounds")
}

/// One message there, and the same back.
fn echo<E: End + 'static>(scenario: &Scenario, mut end: E, mut other: E) -> Measured {
    let board = Board::new();
    let mut listener = Listener::new(board.clone());
    let thread = std::thread::spawn(move || {
        loop {
            let mut goes_on = true;
            other.take(|payload| {
                goes_on = listener.goes_on();
                // Copied, because nothing says that an end can lend and send at once.
                ECHOED.with_borrow_mut(|echoed| {
                    echoed.clear();
                    echoed.extend_from_slice(payload);
                });
            });
            if !goes_on {
                return (listener.used, other);
            }
            ECHOED.with_borrow(|echoed| other.send(|place| place.copy_from_slice(echoed)));
        }
    });
    let mut number = 0u64;
    let mut once = |end: &mut E| {
        let low = number as u8;
        number += 1;
        end.send(|payload| {
            payload[0] = low;
            payload[payload.len() - 1] = low;
        });
        let right = end.take(|payload| payload[0] == low && payload[payload.len() - 1] == low);
        assert!(right, "the answer is that to another question");
    };
    let warming = Instant::now();
    let mut warmed = 0;
    while warming.elapsed() < Duration::from_millis(scenario.warmup_ms) {
        once(&mut end);
        warmed += 1;
    }
    // Turns of a lap: as many as make the cost of the clock next to nothing.
    let turn_ns = (warming.elapsed().as_nanos() as u64 / warmed.max(1)).max(1);
    let turns = (2_000 / turn_ns).clamp(1, 64);
    board.tell(MEASURE);
    once(&mut end);
    let mut latency = histogram();
    let before = Usage::current();
    let begin = Instant::now();
    let until = begin + Duration::from_millis(scenario.duration_ms);
    let mut at = begin;
    let mut count = 0;
    while at < until {
        for _ in 0..turns {
            once(&mut end);
        }
        let then = Instant::now();
        latency.saturating_record_n((then - at).as_nanos() as u64 / turns, turns);
        at = then;
        count += turns;
    }
    let own = before.since();
    board.tell(STOP);
    end.send(|_| {});
    let (used, _other) = thread.join().expect("the other end");
    Measured {
        latency: Some((&latency).into()),
        ..measured(count, scenario.size, at - begin, own, used)
    }
}

thread_local! {
    static ECHOED: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Messages one way, as fast as they go. The reader checks every byte and decides when it is over.
fn stream<const N: usize, E: End + 'static>(
    scenario: &Scenario,
    mut end: E,
    mut other: E,
) -> Measured {
    let board = Board::new();
    let mut listener = Listener::new(board.clone());
    let thread = std::thread::spawn(move || {
        let mut number = 0;
        while listener.goes_on() {
            other.send(|payload| payload::fill(payload, number));
            number += 1;
        }
        // The last one is still to come, so that the reader learns of it in time.
        listener.board.last.0.store(number + 1, Ordering::Release);
        other.send(|payload| payload::fill(payload, number));
        (listener.used, other)
    });
    let stride = (65_536 / N as u64).max(1);
    let mut number = 0u64;
    let mut read = |end: &mut E, count: u64| {
        for _ in 0..count {
            let right = end.take(|payload| payload.len() == N && payload::matches(payload, number));
            assert!(right, "message {number} is another one");
            number += 1;
        }
        number
    };
    let warm = Instant::now() + Duration::from_millis(scenario.warmup_ms);
    let mut first = 0;
    while Instant::now() < warm {
        first = read(&mut end, stride);
    }
    board.tell(MEASURE);
    let before = Usage::current();
    let begin = Instant::now();
    let until = begin + Duration::from_millis(scenario.duration_ms);
    let mut at = begin;
    let mut seen = first;
    while at < until {
        seen = read(&mut end, stride);
        at = Instant::now();
    }
    let own = before.since();
    board.tell(STOP);
    let mut drained = seen;
    while drained < board.last.0.load(Ordering::Acquire) {
        drained = read(&mut end, 1);
    }
    let (used, _other) = thread.join().expect("the other end");
    measured(seen - first, N, at - begin, own, used)
}

/// Many messages at once, and one answer when all of them have been read and checked.
fn burst<const N: usize, E: End + 'static>(
    scenario: &Scenario,
    mut end: E,
    mut other: E,
) -> Measured {
    let board = Board::new();
    let size = scenario.burst();
    let mut listener = Listener::new(board.clone());
    let thread = std::thread::spawn(move || {
        loop {
            for number in 0..size {
                let mut goes_on = true;
                let right = other.take(|payload| {
                    goes_on = listener.goes_on();
                    !goes_on || payload::matches(payload, number)
                });
                assert!(right, "message {number} is another one");
                if !goes_on {
                    return (listener.used, other);
                }
            }
            other.send(|_| {});
        }
    });
    let once = |end: &mut E| {
        for number in 0..size {
            end.send(|payload| payload::fill(payload, number));
        }
        end.take(|_| {});
    };
    let warm = Instant::now() + Duration::from_millis(scenario.warmup_ms);
    while Instant::now() < warm {
        once(&mut end);
    }
    board.tell(MEASURE);
    once(&mut end);
    let mut latency = histogram();
    let before = Usage::current();
    let begin = Instant::now();
    let until = begin + Duration::from_millis(scenario.duration_ms);
    let mut at = begin;
    let mut count = 0;
    while at < until {
        once(&mut end);
        let then = Instant::now();
        latency.saturating_record((then - at).as_nanos() as u64);
        at = then;
        count += size;
    }
    let own = before.since();
    board.tell(STOP);
    end.send(|_| {});
    let (used, _other) = thread.join().expect("the other end");
    Measured {
        latency: Some((&latency).into()),
        ..measured(count, N, at - begin, own, used)
    }
}
