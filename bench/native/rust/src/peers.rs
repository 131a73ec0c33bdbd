//! What is measured: Millrace through its library for C, and the rivals of this language.

use crate::protocol::{Pin, Scenario, Wait};
use iceoryx2::port::{publisher::Publisher, subscriber::Subscriber};
use iceoryx2::prelude::*;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

/// One end of a pair, to be moved to its thread.
pub trait End: Send {
    /// Waits for room, lets `make` fill the payload, and sends it.
    fn send(&mut self, make: impl FnOnce(&mut [u8]));
    /// Waits for the next message and lends it to `see`.
    fn take<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> R;
}

/// A pair whose messages all have `N` bytes, or why there is none.
pub trait Peer<const N: usize> {
    type End: End + 'static;
    fn open(scenario: &Scenario) -> Result<(Self::End, Self::End), String>;
}

/// Refuses what a peer without a way to sleep cannot do.
pub fn spins_only(scenario: &Scenario) -> Result<(), String> {
    match (scenario.wait, scenario.pin) {
        (Wait::Park, _) => Err("it has no way to sleep".into()),
        (_, Pin::OneCore) => Err("two that spin on one core wait for the scheduler".into()),
        _ => Ok(()),
    }
}

pub struct Rtrb;

pub struct RtrbEnd<const N: usize> {
    writer: rtrb::Producer<[u8; N]>,
    reader: rtrb::Consumer<[u8; N]>,
}

impl<const N: usize> Peer<N> for Rtrb {
    type End = RtrbEnd<N>;

    fn open(scenario: &Scenario) -> Result<(Self::End, Self::End), String> {
        spins_only(scenario)?;
        let (there, here) = rtrb::RingBuffer::new(scenario.window());
        let (back, home) = rtrb::RingBuffer::new(scenario.window());
        Ok((
            RtrbEnd {
                writer: there,
                reader: home,
            },
            RtrbEnd {
                writer: back,
                reader: here,
            },
        ))
    }
}

impl<const N: usize> End for RtrbEnd<N> {
    #[inline(always)]
    fn send(&mut self, make: impl FnOnce(&mut [u8])) {
        let mut payload = [0; N];
        make(&mut payload);
        while let Err(rtrb::PushError::Full(back)) = self.writer.push(payload) {
            payload = back;
            spin_loop();
        }
    }

    #[inline(always)]
    fn take<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> R {
        loop {
            match self.reader.pop() {
                Ok(payload) => return see(&payload),
                Err(_) => spin_loop(),
            }
        }
    }
}

pub struct Crossbeam;

pub struct CrossbeamEnd<const N: usize> {
    writer: crossbeam_channel::Sender<[u8; N]>,
    reader: crossbeam_channel::Receiver<[u8; N]>,
    parks: bool,
}

impl<const N: usize> Peer<N> for Crossbeam {
    type End = CrossbeamEnd<N>;

    fn open(scenario: &Scenario) -> Result<(Self::End, Self::End), String> {
        let parks = scenario.wait == Wait::Park;
        if !parks {
            spins_only(scenario)?;
        }
        let (there, here) = crossbeam_channel::bounded(scenario.window());
        let (back, home) = crossbeam_channel::bounded(scenario.window());
        Ok((
            CrossbeamEnd {
                writer: there,
                reader: home,
                parks,
            },
            CrossbeamEnd {
                writer: back,
                reader: here,
                parks,
            },
        ))
    }
}

impl<const N: usize> End for CrossbeamEnd<N> {
    #[inline(always)]
    fn send(&mut self, make: impl FnOnce(&mut [u8])) {
        let mut payload = [0; N];
        make(&mut payload);
        if self.parks {
            return self.writer.send(payload).expect("the other end is there");
        }
        while let Err(crossbeam_channel::TrySendError::Full(back)) = self.writer.try_send(payload) {
            payload = back;
            spin_loop();
        }
    }

    #[inline(always)]
    fn take<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> R {
        if self.parks {
            return see(&self.reader.recv().expect("the other end is there"));
        }
        loop {
            match self.reader.try_recv() {
                Ok(payload) => return see(&payload),
                Err(_) => spin_loop(),
            }
        }
    }
}

/// A service of iceoryx2, one for each way: samples that are lent in shared memory. Its subscribers
/// poll.
type Shared = ipc_threadsafe::Service;

static OPENED: AtomicU32 = AtomicU32::new(0);

pub struct Iceoryx;

pub struct IceoryxEnd<const N: usize> {
    publisher: Publisher<Shared, [u8; N], ()>,
    subscriber: Subscriber<Shared, [u8; N], ()>,
    _node: Node<Shared>,
}

impl<const N: usize> Peer<N> for Iceoryx
where
    [u8; N]: ZeroCopySend,
{
    type End = IceoryxEnd<N>;

    fn open(scenario: &Scenario) -> Result<(Self::End, Self::End), String> {
        spins_only(scenario)?;
        set_log_level(LogLevel::Fatal);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let names = ["there", "back"]
            .map(|way| format!("millrace-bench/{}/{number}/{way}", std::process::id()));
        let window = scenario.window();
        let open = |out: &str, home: &str| -> Result<Self::End, String> {
            let told = |err: &dyn std::fmt::Debug| format!("iceoryx2 answers {err:?}");
            let node = NodeBuilder::new()
                .create::<Shared>()
                .map_err(|err| told(&err))?;
            let service = |name: &str| {
                node.service_builder(&name.try_into().map_err(|err| told(&err))?)
                    .publish_subscribe::<[u8; N]>()
                    .max_publishers(1)
                    .max_subscribers(1)
                    .subscriber_max_buffer_size(window)
                    // A full one makes the publisher wait instead of losing the oldest.
                    .enable_safe_overflow(false)
                    .open_or_create()
                    .map_err(|err| told(&err))
            };
            let publisher = service(out)?
                .publisher_builder()
                .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
                .create()
                .map_err(|err| told(&err))?;
            let subscriber = service(home)?
                .subscriber_builder()
                .create()
                .map_err(|err| told(&err))?;
            Ok(IceoryxEnd {
                publisher,
                subscriber,
                _node: node,
            })
        };
        let a = open(&names[0], &names[1])?;
        let b = open(&names[1], &names[0])?;
        Ok((a, b))
    }
}

impl<const N: usize> End for IceoryxEnd<N>
where
    [u8; N]: ZeroCopySend,
{
    #[inline(always)]
    fn send(&mut self, make: impl FnOnce(&mut [u8])) {
        let sample = self.publisher.loan_uninit().expect("a sample");
        let mut payload = [0; N];
        make(&mut payload);
        sample.write_payload(payload).send().expect("sent");
    }

    #[inline(always)]
    fn take<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> R {
        loop {
            match self.subscriber.receive().expect("the publisher is there") {
                Some(sample) => return see(sample.payload()),
                None => spin_loop(),
            }
        }
    }
}
