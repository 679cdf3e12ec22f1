import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Qpid JMS as a foreign client.
 *
 * <pre>
 * Client send        URL QUEUE FIRST COUNT
 * Client receive     URL QUEUE FIRST COUNT
 * Client transfer    URL FROM TO FIRST COUNT       in a transacted session: rolls ten back, then commits ten at a time
 * Client publish     URL TOPIC FIRST COUNT
 * Client durable     URL TOPIC FIRST COUNT CLIENT-ID NAME   opens the subscription and receives COUNT (0: opens it)
 * Client none-left   URL TOPIC CLIENT-ID NAME               fails when the subscription still has anything
 * Client unsubscribe URL CLIENT-ID NAME
 * </pre>
 *
 * The body of message i is text when i is even, bytes when odd. Prints one line; exit 0 when all is as it should be.
 */
public final class Client {
  private static final long RECEIVE_MS = 15_000;

  public static void main(String[] arguments) throws Exception {
    String[] rest = Arrays.copyOfRange(arguments, 2, arguments.length);
    String clientId = switch (arguments[0]) {
      case "durable" -> rest[3];
      case "none-left" -> rest[1];
      case "unsubscribe" -> rest[0];
      default -> null;
    };
    try (Connection connection = new JmsConnectionFactory(arguments[1]).createConnection()) {
      if (clientId != null) connection.setClientID(clientId);
      connection.start();
      boolean transacted = arguments[0].equals("transfer");
      int mode = transacted ? Session.SESSION_TRANSACTED : Session.CLIENT_ACKNOWLEDGE;
      run(arguments[0], connection.createSession(transacted, mode), rest);
    }
  }

  private static void run(String command, Session session, String[] rest) throws Exception {
    switch (command) {
      case "send" -> send(session, session.createProducer(session.createQueue(rest[0])), rest);
      case "publish" -> send(session, session.createProducer(session.createTopic(rest[0])), rest);
      case "transfer" -> transfer(session, rest);
      case "receive" -> receive(session.createConsumer(session.createQueue(rest[0])), rest);
      case "durable" -> receive(session.createDurableSubscriber(session.createTopic(rest[0]), rest[4]), rest);
      case "none-left" -> noneLeft(session.createDurableSubscriber(session.createTopic(rest[0]), rest[2]));
      case "unsubscribe" -> {
        session.unsubscribe(rest[1]);
        System.out.println("unsubscribed");
      }
      default -> throw new IllegalArgumentException(command);
    }
  }

  private static void send(Session session, MessageProducer producer, String[] rest) throws Exception {
    int first = Integer.parseInt(rest[1]);
    int count = Integer.parseInt(rest[2]);
    for (int i = first; i < first + count; i++) {
      Message message;
      if (i % 2 == 0) {
        message = session.createTextMessage(text(i));
      } else {
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(bytes(i));
        message = bytes;
      }
      message.setIntProperty("number", i);
      producer.send(message); // persistent: returns when the peer has accepted it
    }
    System.out.println("accepted " + count);
  }

  private static void receive(MessageConsumer consumer, String[] rest) throws Exception {
    int first = Integer.parseInt(rest[1]);
    int count = Integer.parseInt(rest[2]);
    Set<Integer> seen = new HashSet<>();
    for (int i = 0; i < count; i++) {
      Message message = consumer.receive(RECEIVE_MS);
      if (message == null) throw new IllegalStateException("only " + i + " of " + count + " came");
      int number = message.getIntProperty("number");
      if (number < first || number >= first + count) throw new IllegalStateException("not expected: " + number);
      if (!seen.add(number)) throw new IllegalStateException("came twice: " + number);
      compare(number, message);
      if (i % 100 == 99 || i == count - 1) message.acknowledge(); // all so far
    }
    consumer.close();
    System.out.println("received " + count);
  }

  private static void transfer(Session session, String[] rest) throws Exception {
    MessageConsumer consumer = session.createConsumer(session.createQueue(rest[0]));
    MessageProducer producer = session.createProducer(session.createQueue(rest[1]));
    int count = Integer.parseInt(rest[3]);
    for (int i = 0; i < 10; i++) producer.send(taken(consumer, i));
    session.rollback();
    for (int i = 1; i <= count; i++) {
      producer.send(taken(consumer, i));
      if (i % 10 == 0 || i == count) session.commit();
    }
    if (consumer.receive(500) != null) throw new IllegalStateException("more than was sent");
    session.commit();
    System.out.println("transferred " + count);
  }

  private static Message taken(MessageConsumer consumer, int after) throws Exception {
    Message message = consumer.receive(RECEIVE_MS);
    if (message == null) throw new IllegalStateException("nothing came after " + after);
    compare(message.getIntProperty("number"), message);
    return message;
  }

  private static void noneLeft(MessageConsumer consumer) throws Exception {
    Message message = consumer.receive(1_000);
    if (message != null) throw new IllegalStateException("still there: " + message.getIntProperty("number"));
    consumer.close();
    System.out.println("none left");
  }

  private static void compare(int number, Message message) throws Exception {
    boolean same;
    if (number % 2 == 0) {
      same = message instanceof TextMessage text && text.getText().equals(text(number));
    } else {
      same = message instanceof BytesMessage bytes && Arrays.equals(content(bytes), bytes(number));
    }
    if (!same) throw new IllegalStateException("another body than was sent: " + number + " " + message);
  }

  private static byte[] content(BytesMessage message) throws Exception {
    byte[] content = new byte[(int) message.getBodyLength()];
    message.readBytes(content);
    return content;
  }

  private static String text(int i) {
    return "message " + i + " é ☃ 𝄞";
  }

  private static byte[] bytes(int i) {
    byte[] content = new byte[i % 257];
    for (int at = 0; at < content.length; at++) content[at] = (byte) (i + at);
    return content;
  }

  private Client() {}
}
