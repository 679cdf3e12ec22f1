// Sessions, sizes and time-outs with rhea:
//   node sessions.js burst HOST PORT NODE COUNT   so many sessions of one connection; each sends one message and closes
//                                                 its link and itself in one breath; at last the connection
//   node sessions.js large HOST PORT NODE MIB     one message of so many MiB there and back
//   node sessions.js idle  HOST PORT NODE MS      an idle-time-out of MS: only reads for 3 s, and is not given up
// Prints one line of JSON; exit 0 when all is as it should be.
"use strict";
const rhea = require("rhea");
const [mode, host, port, node, countText] = process.argv.slice(2);
const count = Number(countText);
const container = rhea.create_container({ id: `rhea-${process.pid}` });
const result = { accepted: 0, links_closed: 0, sessions_closed: 0, octets: 0, error: "" };
const queue = { address: node, capabilities: ["queue"] };

function fail(what) {
  result.error = String(what);
  console.log(JSON.stringify(result));
  process.exit(1);
}

for (const fault of ["connection_error", "session_error", "sender_error", "receiver_error"]) {
  container.on(fault, (context) => fail(`${fault}: ${(context[fault.split("_")[0]] || {}).error}`));
}
for (const refusal of ["rejected", "released", "modified", "disconnected", "protocol_error", "error"]) {
  container.on(refusal, (context) => fail(`${refusal}: ${(context && context.error) || ""}`));
}
container.on("connection_close", () => console.log(JSON.stringify(result)));
setTimeout(() => fail("no end within 90 s"), 90000).unref();

const modes = {
  burst(connection) {
    for (let i = 0; i < count; i++) {
      const session = connection.create_session();
      session.begin();
      const sender = session.open_sender({ name: `sender-${i}`, target: queue });
      session.open_receiver({ name: `receiver-${i}`, source: queue, credit_window: 0 });
      sender.once("sendable", () => sender.send({ body: i, durable: true }));
    }
    container.on("accepted", ({ sender, session }) => {
      result.accepted++;
      sender.close();
      session.close();
    });
    container.on("sender_close", () => result.links_closed++);
    container.on("session_close", () => {
      if (++result.sessions_closed === count) connection.close();
    });
  },
  large(connection) {
    const octets = Buffer.alloc(count << 20, "0123456789abcdef!");
    connection.open_receiver({ source: queue });
    const sender = connection.open_sender({ target: queue });
    sender.once("sendable", () => sender.send({ body: rhea.message.data_section(octets), durable: true }));
    container.on("accepted", () => result.accepted++);
    container.on("message", ({ message }) => {
      result.octets = message.body.content.length;
      if (Buffer.compare(message.body.content, octets)) fail("other octets");
      setTimeout(() => connection.close(), 100);
    });
  },
  idle(connection) {
    setTimeout(() => connection.close(), 3000);
  },
};
container.on("connection_open", ({ connection }) => modes[mode](connection));
const patience = mode === "idle" ? { idle_time_out: count } : {};
container.connect({ host, port: Number(port), reconnect: false, ...patience });
