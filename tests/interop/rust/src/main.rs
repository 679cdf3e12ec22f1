//! fe2o3-amqp as a foreign client.
//!
//!     client send     HOST:PORT QUEUE COUNT      each confirmed
//!     client transfer HOST:PORT FROM TO COUNT BATCH
//!                     in transactions; the first one is rolled back
//!     client receive  HOST:PORT QUEUE COUNT      accepts each
//!
//! The body of message i is the text `message i`. Prints one line; exit 0 when all is as it should be.

use std::collections::BTreeSet;
use std::env::args;
use std::error::Error;
use std::time::Duration;

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::transaction::{Controller, Transaction, TransactionDischarge, TransactionalRetirement};
use fe2o3_amqp::types::messaging::Outcome;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};

type Said = Result<String, Box<dyn Error>>;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = args().skip(1).collect();
    let (mut connection, mut session) = connect(&arguments[1]).await?;
    let work = run(&mut session, &arguments);
    let said = tokio::time::timeout(PATIENCE, work).await.map_err(|_| "no end within a minute")??;
    session.end().await?;
    connection.close().await?;
    println!("{said}");
    Ok(())
}

async fn connect(address: &str) -> Result<(ConnectionHandle<()>, SessionHandle<()>), Box<dyn Error>> {
    let url = format!("amqp://{address}");
    let container = format!("fe2o3-{}", std::process::id());
    let mut connection = Connection::open(container, url.as_str()).await?;
    let session = Session::begin(&mut connection).await?;
    Ok((connection, session))
}

async fn run(session: &mut SessionHandle<()>, arguments: &[String]) -> Said {
    let number = |at: usize| arguments[at].parse::<usize>();
    match arguments[0].as_str() {
        "send" => send(session, &arguments[2], number(3)?).await,
        "receive" => receive(session, &arguments[2], number(3)?).await,
        "transfer" => transfer(session, &arguments[2], &arguments[3], number(4)?, number(5)?).await,
        other => Err(format!("no scenario {other}").into()),
    }
}

async fn send(session: &mut SessionHandle<()>, queue: &str, count: usize) -> Said {
    let mut sender = Sender::attach(session, "sender", queue).await?;
    for i in 0..count {
        accepted(sender.send(format!("message {i}")).await?)?;
    }
    sender.close().await?;
    Ok(format!("accepted {count}"))
}

fn accepted(outcome: Outcome) -> Result<(), Box<dyn Error>> {
    match outcome {
        Outcome::Accepted(_) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

async fn receive(session: &mut SessionHandle<()>, queue: &str, count: usize) -> Said {
    let mut receiver = Receiver::attach(session, "receiver", queue).await?;
    let mut bodies = BTreeSet::new();
    for _ in 0..count {
        let delivery: Delivery<String> = receiver.recv().await?;
        receiver.accept(&delivery).await?;
        bodies.insert(delivery.body().clone());
    }
    receiver.close().await?;
    let expected: BTreeSet<String> = (0..count).map(|i| format!("message {i}")).collect();
    if bodies != expected {
        return Err(format!("{} different bodies of {count}", bodies.len()).into());
    }
    Ok(format!("received {count}"))
}

/// Takes from one queue and sends to another; each is accepted, and settled, inside its transaction before the next.
async fn transfer(session: &mut SessionHandle<()>, from: &str, to: &str, count: usize, batch: usize) -> Said {
    let mut receiver = Receiver::attach(session, "receiver", from).await?;
    let mut sender = Sender::attach(session, "sender", to).await?;
    let controller = Controller::attach(session, "controller").await?;
    let (mut committed, mut rolled_back) = (0, 0);
    while committed < count {
        let transaction = Transaction::declare(&controller, None).await?;
        for _ in 0..batch {
            let delivery: Delivery<String> = receiver.recv().await?;
            accepted(transaction.post(&mut sender, delivery.body().clone()).await?)?;
            transaction.accept(&mut receiver, &delivery).await?;
        }
        if rolled_back == 0 {
            transaction.rollback().await?;
            rolled_back = batch;
        } else {
            transaction.commit().await?;
            committed += batch;
        }
    }
    controller.close().await?;
    sender.close().await?;
    receiver.close().await?;
    Ok(format!("committed {committed}, rolled back {rolled_back}"))
}
