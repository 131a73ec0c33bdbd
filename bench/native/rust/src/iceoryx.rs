//! iceoryx2: samples that are lent in shared memory, one service each way. Its subscribers poll.

use crate::peers::{End, Peer, spins_only};
use crate::protocol::Scenario;
use iceoryx2::port::{publisher::Publisher, subscriber::Subscriber};
use iceoryx2::prelude::*;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

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
