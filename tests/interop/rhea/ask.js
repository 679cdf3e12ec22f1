// Request and reply with rhea:  node ask.js HOST PORT NODE COUNT
// The client has a dynamic receiver, whose address is what questions are to be answered at; the service answers on a
// sender without a target. Prints one line of JSON; exit 0 when every question was answered once.
"use strict";
const rhea = require("rhea");
const [host, port, node, countText] = process.argv.slice(2);
const count = Number(countText);
const result = { answered: 0, wrong: [], address: "", error: "" };
const options = { host, port: Number(port), reconnect: false };

function fail(what) {
  result.error = String(what);
  console.log(JSON.stringify(result));
  process.exit(1);
}

function watched(container) {
  for (const fault of ["connection_error", "session_error", "sender_error", "receiver_error"]) {
    container.on(fault, (context) => fail(`${fault}: ${(context[fault.split("_")[0]] || {}).error}`));
  }
  for (const refusal of ["rejected", "released", "modified"]) container.on(refusal, () => fail(refusal));
  return container;
}

const service = watched(rhea.create_container({ id: `service-${process.pid}` }));
const client = watched(rhea.create_container({ id: `client-${process.pid}` }));
let answers;
let questions;

service.on("connection_open", ({ connection }) => {
  answers = connection.open_sender({ target: {} });
  connection.open_receiver(node);
});
service.once("sendable", () => client.connect(options));
service.on("message", ({ message }) => {
  answers.send({ to: message.reply_to, correlation_id: message.correlation_id, durable: true, body: message.body * 2 });
});

client.on("connection_open", ({ connection }) => {
  connection.open_receiver({ source: { dynamic: true } });
});
client.on("receiver_open", ({ receiver, connection }) => {
  result.address = receiver.source.address;
  questions = connection.open_sender(node);
});
client.once("sendable", () => {
  for (let i = 0; i < count; i++) {
    questions.send({ reply_to: result.address, correlation_id: String(i), durable: true, body: i });
  }
});
client.on("message", ({ message, connection }) => {
  if (message.body !== 2 * Number(message.correlation_id) || message.durable !== true) result.wrong.push(message.body);
  if (++result.answered === count) {
    connection.close();
    answers.connection.close();
  }
});
client.on("disconnected", () => fail("disconnected"));
client.on("connection_close", () => console.log(JSON.stringify(result)));
service.connect(options);
