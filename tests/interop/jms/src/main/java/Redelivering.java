import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * What comes again to a JMS application that does not acknowledge, and how often, as whatever broker has it.
 *
 * <pre>
 * Redelivering URL PREFIX WHERE      WHERE: queue, topic, durable, shared or shared-durable
 * </pre>
 *
 * Prints a line for each thing that the application does: what it got, in order, a bar before each time that it did not
 * keep what it had got, and two before what a later application finds. A message is its body and its
 * JMSXDeliveryCount, with an exclamation mark where JMSRedelivered is set.
 */
public final class Redelivering {
  private static final int COUNT = 4;
  private static final long RECEIVE_MS = 20_000;
  private static final long NOTHING_MS = 700;

  private final String url;
  private final String prefix;
  private final String where;

  public static void main(String[] arguments) throws Exception {
    Redelivering program = new Redelivering(arguments[0], arguments[1], arguments[2]);
    program.play("commit", Session.SESSION_TRANSACTED, program::commits);
    program.play("rollback", Session.SESSION_TRANSACTED, program::rollsBack);
    program.play("rollback-of-some", Session.SESSION_TRANSACTED, program::rollsSomeBack);
    program.play("recover", Session.CLIENT_ACKNOWLEDGE, program::recovers);
    program.play("listener-throws", Session.AUTO_ACKNOWLEDGE, program::throwsOnce);
    program.play("close", Session.CLIENT_ACKNOWLEDGE, program::closes);
    program.play("close-transacted", Session.SESSION_TRANSACTED, program::closes);
  }

  private Redelivering(String url, String prefix, String where) {
    this.url = url;
    this.prefix = prefix;
    this.where = where;
  }

  /** One application after the other: the first does what is to be seen, the second looks what is left. */
  private void play(String what, int mode, Act act) throws Exception {
    List<String> got = new ArrayList<>();
    String name = prefix + "." + where + "." + what;
    try (Connection connection = connected(name)) {
      Session session = connection.createSession(mode);
      MessageConsumer consumer = consumer(session, name);
      connection.start();
      send(name);
      act.on(session, consumer, got);
    }
    got.add("||");
    try (Connection connection = connected(name)) {
      Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
      MessageConsumer consumer = consumer(session, name);
      connection.start();
      rest(consumer, got);
      consumer.close();
      if (where.endsWith("durable")) session.unsubscribe("subscription");
    }
    System.out.println(what + ": " + String.join(" ", got));
  }

  private Connection connected(String name) throws JMSException {
    Connection connection = new JmsConnectionFactory(url).createConnection();
    if (where.endsWith("durable")) connection.setClientID(name);
    return connection;
  }

  private Destination destination(Session session, String name) throws JMSException {
    return where.equals("queue") ? session.createQueue(name) : session.createTopic(name);
  }

  private MessageConsumer consumer(Session session, String name) throws JMSException {
    Destination destination = destination(session, name);
    return switch (where) {
      case "durable" -> session.createDurableConsumer((Topic) destination, "subscription");
      case "shared" -> session.createSharedConsumer((Topic) destination, "subscription");
      case "shared-durable" -> session.createSharedDurableConsumer((Topic) destination, "subscription");
      default -> session.createConsumer(destination);
    };
  }

  private void send(String name) throws JMSException {
    try (Connection connection = new JmsConnectionFactory(url).createConnection()) {
      Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(destination(session, name));
      for (int i = 0; i < COUNT; i++) producer.send(session.createTextMessage("m" + i));
    }
  }

  private void commits(Session session, MessageConsumer consumer, List<String> got) throws JMSException {
    next(consumer, COUNT, got);
    session.commit();
    rest(consumer, got);
    session.commit();
  }

  private void rollsBack(Session session, MessageConsumer consumer, List<String> got) throws JMSException {
    for (int i = 0; i < 2; i++) {
      next(consumer, COUNT, got);
      session.rollback();
      got.add("|");
    }
    next(consumer, COUNT, got);
    rest(consumer, got);
    session.commit();
  }

  private void rollsSomeBack(Session session, MessageConsumer consumer, List<String> got) throws JMSException {
    next(consumer, 1, got);
    session.commit();
    next(consumer, 1, got);
    session.rollback();
    got.add("|");
    next(consumer, COUNT - 1, got);
    rest(consumer, got);
    session.commit();
  }

  private void recovers(Session session, MessageConsumer consumer, List<String> got) throws JMSException {
    next(consumer, 1, got).acknowledge();
    next(consumer, COUNT - 2, got);
    session.recover();
    got.add("|");
    Message last = next(consumer, COUNT - 1, got);
    rest(consumer, got);
    last.acknowledge();
  }

  /** The second message fails once. When the others come in between is no one's promise: they are told by name. */
  private void throwsOnce(Session session, MessageConsumer consumer, List<String> got) throws Exception {
    LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
    AtomicBoolean failed = new AtomicBoolean();
    consumer.setMessageListener(message -> {
      String said = shown(message);
      heard.add(said);
      if (said.startsWith("m1") && !failed.getAndSet(true)) throw new IllegalStateException("as it is to be seen");
    });
    List<String> all = new ArrayList<>();
    String one = heard.poll(RECEIVE_MS, TimeUnit.MILLISECONDS);
    while (one != null) {
      all.add(one);
      one = heard.poll(all.size() <= COUNT ? RECEIVE_MS : NOTHING_MS, TimeUnit.MILLISECONDS);
    }
    all.sort(null);
    got.addAll(all);
  }

  private void closes(Session session, MessageConsumer consumer, List<String> got) throws JMSException {
    next(consumer, COUNT, got);
  }

  private static Message next(MessageConsumer consumer, int count, List<String> got) throws JMSException {
    Message last = null;
    for (int i = 0; i < count; i++) {
      last = consumer.receive(RECEIVE_MS);
      got.add(last == null ? "nothing" : shown(last));
    }
    if (last == null) throw new IllegalStateException("got no more than " + got);
    return last;
  }

  private static void rest(MessageConsumer consumer, List<String> got) throws JMSException {
    for (Message more = consumer.receive(NOTHING_MS); more != null; more = consumer.receive(NOTHING_MS)) {
      got.add(shown(more));
    }
  }

  private static String shown(Message message) {
    try {
      String again = message.getJMSRedelivered() ? "!" : "";
      return ((TextMessage) message).getText() + again + "x" + message.getIntProperty("JMSXDeliveryCount");
    } catch (JMSException error) {
      throw new IllegalStateException(error);
    }
  }

  private interface Act {
    void on(Session session, MessageConsumer consumer, List<String> got) throws Exception;
  }
}
