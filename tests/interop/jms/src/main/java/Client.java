import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Qpid JMS as a foreign client.
 *
 * <pre>
 * Client send        URL QUEUE FIRST COUNT
 * Client receive     URL QUEUE FIRST COUNT
 * Client transfer    URL FROM TO FIRST COUNT       in a transacted session: rolls ten back, then commits ten at a time
 * Client priorities  URL QUEUE COUNT               sends with priority i % 10, then receives: the highest first
 * Client publish     URL TOPIC FIRST COUNT
 * Client durable     URL TOPIC FIRST COUNT CLIENT-ID NAME   opens the subscription and receives COUNT (0: opens it)
 * Client none-left   URL TOPIC CLIENT-ID NAME               fails when the subscription still has anything
 * Client unsubscribe URL CLIENT-ID NAME
 * Client unsubscribe-global URL NAME                        of a shared durable that no client has for itself
 * Client share       URL TOPIC FIRST COUNT HOW CLIENT-ID NAME   three consumers of two connections share what is
 *                    published meanwhile: HOW is durable or volatile, CLIENT-ID - for none (then the durable is global)
 * Client second      URL TOPIC CLIENT-ID NAME               a second consumer of a durable is refused, and one of the
 *                    other kind of a durable that is there: prints with what
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
      case "second" -> rest[1];
      case "share" -> rest[4].equals("-") ? null : rest[4];
      default -> null;
    };
    try (Connection connection = new JmsConnectionFactory(arguments[1]).createConnection()) {
      if (clientId != null) connection.setClientID(clientId);
      connection.start();
      boolean transacted = arguments[0].equals("transfer");
      int mode = transacted ? Session.SESSION_TRANSACTED : Session.CLIENT_ACKNOWLEDGE;
      Session session = connection.createSession(transacted, mode);
      switch (arguments[0]) {
        case "share" -> share(connection, arguments[1], rest);
        case "second" -> second(connection, session, rest);
        default -> run(arguments[0], session, rest);
      }
    }
  }

  private static void run(String command, Session session, String[] rest) throws Exception {
    switch (command) {
      case "send" -> send(session, session.createProducer(session.createQueue(rest[0])), rest);
      case "publish" -> send(session, session.createProducer(session.createTopic(rest[0])), rest);
      case "transfer" -> transfer(session, rest);
      case "priorities" -> priorities(session, rest);
      case "receive" -> receive(session.createConsumer(session.createQueue(rest[0])), rest);
      case "durable" -> receive(session.createDurableSubscriber(session.createTopic(rest[0]), rest[4]), rest);
      case "none-left" -> noneLeft(session.createDurableSubscriber(session.createTopic(rest[0]), rest[2]));
      case "unsubscribe" -> {
        session.unsubscribe(rest[1]);
        System.out.println("unsubscribed");
      }
      case "unsubscribe-global" -> {
        session.unsubscribe(rest[0]);
        System.out.println("unsubscribed");
      }
      default -> throw new IllegalArgumentException(command);
    }
  }

  /** Of one client, sessions of one connection share; without a client id, also those of another. */
  private static void share(Connection connection, String url, String[] rest) throws Exception {
    int first = Integer.parseInt(rest[1]);
    int count = Integer.parseInt(rest[2]);
    boolean global = rest[4].equals("-");
    try (Connection other = new JmsConnectionFactory(url).createConnection()) {
      other.start();
      List<MessageConsumer> consumers = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        Session session = (global && i == 2 ? other : connection).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic(rest[0]);
        consumers.add(rest[3].equals("durable")
            ? session.createSharedDurableConsumer(topic, rest[5])
            : session.createSharedConsumer(topic, rest[5]));
      }
      Session publishing = other.createSession(false, Session.AUTO_ACKNOWLEDGE);
      publish(publishing, publishing.createProducer(publishing.createTopic(rest[0])), first, count);
      Set<Integer> seen = new HashSet<>();
      int[] shares = new int[3];
      long until = System.nanoTime() + RECEIVE_MS * 1_000_000;
      while (seen.size() < count && System.nanoTime() < until) {
        for (int i = 0; i < 3; i++) {
          Message message = consumers.get(i).receive(20);
          if (message == null) continue;
          int number = message.getIntProperty("number");
          if (!seen.add(number)) throw new IllegalStateException("came twice: " + number);
          compare(number, message);
          shares[i]++;
        }
      }
      if (seen.size() < count) throw new IllegalStateException("only " + seen.size() + " of " + count + " came");
      for (MessageConsumer consumer : consumers) {
        if (consumer.receive(300) != null) throw new IllegalStateException("more than was published");
      }
      for (MessageConsumer consumer : consumers) consumer.close();
      long none = Arrays.stream(shares).filter(share -> share == 0).count();
      System.out.println("shared " + count + (none == 0 ? " by 3" : " but " + none + " had nothing"));
    }
  }

  private static void second(Connection connection, Session session, String[] rest) throws Exception {
    Topic topic = session.createTopic(rest[0]);
    String name = rest[2];
    Consume exclusive = (of, at) -> of.createDurableConsumer(at, name);
    MessageConsumer held = session.createDurableConsumer(topic, name);
    if (refused(connection, exclusive, rest[0]).equals("taken")) throw new IllegalStateException("taken twice");
    held.close();
    String shared = refused(connection, (of, at) -> of.createSharedDurableConsumer(at, name), rest[0]);
    session.createSharedDurableConsumer(topic, name + "-shared").close();
    String alone = refused(connection, (of, at) -> of.createDurableConsumer(at, name + "-shared"), rest[0]);
    System.out.println(shared + " " + alone);
  }

  private interface Consume {
    MessageConsumer from(Session session, Topic topic) throws Exception;
  }

  private static String refused(Connection connection, Consume consume, String topic) throws Exception {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    try {
      consume.from(session, session.createTopic(topic));
      return "taken";
    } catch (JMSException refusal) {
      String said = String.valueOf(refusal.getMessage());
      int at = said.indexOf("amqp:");
      return at < 0 ? said : said.substring(at).split("[^a-z:-]")[0];
    }
  }

  private static void send(Session session, MessageProducer producer, String[] rest) throws Exception {
    int count = Integer.parseInt(rest[2]);
    publish(session, producer, Integer.parseInt(rest[1]), count);
    System.out.println("accepted " + count);
  }

  private static void publish(Session session, MessageProducer producer, int first, int count) throws Exception {
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

  private static void priorities(Session session, String[] rest) throws Exception {
    MessageProducer producer = session.createProducer(session.createQueue(rest[0]));
    int count = Integer.parseInt(rest[1]);
    for (int i = 0; i < count; i++) {
      Message message = session.createTextMessage(text(i));
      message.setIntProperty("number", i);
      producer.send(message, DeliveryMode.PERSISTENT, i % 10, 0);
    }
    MessageConsumer consumer = session.createConsumer(session.createQueue(rest[0]));
    int before = Integer.MIN_VALUE;
    for (int i = 0; i < count; i++) {
      Message message = consumer.receive(RECEIVE_MS);
      if (message == null) throw new IllegalStateException("only " + i + " of " + count + " came");
      int number = message.getIntProperty("number");
      if (message.getJMSPriority() != number % 10) throw new IllegalStateException("another priority: " + number);
      int rank = (9 - number % 10) * count + number;
      if (rank < before) throw new IllegalStateException(number + " came too late");
      before = rank;
    }
    System.out.println("in order " + count);
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
