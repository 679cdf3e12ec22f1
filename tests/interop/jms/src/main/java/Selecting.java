import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Selectors and browsers with Qpid JMS.
 *
 * <pre>
 * Selecting queue URL QUEUE
 * Selecting topic URL TOPIC CLIENT-ID
 * </pre>
 *
 * Message i has the properties number (i) and colour (red when even, blue when odd), priority i % 10, type `kind-` and
 * i % 3, correlation id `c-` and i. Prints one line; exit 0 when all is as it should be.
 */
public final class Selecting {
  private static final long RECEIVE_MS = 15_000;
  private static final int COUNT = 100;

  public static void main(String[] arguments) throws Exception {
    boolean topic = arguments[0].equals("topic");
    try (Connection connection = new JmsConnectionFactory(arguments[1]).createConnection()) {
      if (topic) connection.setClientID(arguments[3]);
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      if (topic) topic(session, session.createTopic(arguments[2]));
      else queue(session, session.createQueue(arguments[2]));
    }
  }

  private static void queue(Session session, Queue queue) throws Exception {
    try (MessageProducer producer = session.createProducer(queue)) {
      for (int i = 0; i < COUNT; i++) send(session, producer, i);
    }
    same("browsed", browsed(session.createBrowser(queue)), i -> true);
    same("browsed some", browsed(session.createBrowser(queue, "number BETWEEN 10 AND 19")), i -> i >= 10 && i < 20);
    IntPredicate red = i -> i % 2 == 0 && i < 20;
    same("red", taken(session.createConsumer(queue, "colour = 'red' AND number < 20"), 10), red);
    IntPredicate urgent = i -> i % 10 > 7 && i >= 20 && i % 3 == 0;
    String headers = "JMSPriority > 7 AND JMSType = 'kind-0' AND number >= 20 AND JMSDeliveryMode = 'PERSISTENT'";
    same("urgent", taken(session.createConsumer(queue, headers), count(urgent)), urgent);
    IntPredicate related = i -> i == 33;
    String one = "JMSCorrelationID LIKE 'c!-33' ESCAPE '!' OR nothing > 1";
    same("related", taken(session.createConsumer(queue, one), 1), related);
    IntPredicate rest = i -> !red.test(i) && !urgent.test(i) && !related.test(i);
    same("browsed the rest", browsed(session.createBrowser(queue)), rest);
    same("the rest", taken(session.createConsumer(queue), count(rest)), rest);
    same("browsed nothing", browsed(session.createBrowser(queue)), i -> false);
    try {
      session.createConsumer(queue, "a = = 1");
      throw new IllegalStateException("that is no selector");
    } catch (JMSException refused) {
      System.out.println("selected");
    }
  }

  private static void topic(Session session, Topic topic) throws Exception {
    MessageConsumer blue = session.createDurableConsumer(topic, "blue", "colour = 'blue'", false);
    MessageConsumer plain = session.createConsumer(topic, "number > 89");
    MessageProducer producer = session.createProducer(topic);
    for (int i = 0; i < COUNT; i++) send(session, producer, i);
    same("plain", taken(plain, 10), i -> i > 89);
    same("the first ten", received(blue, 10), i -> i % 2 == 1 && i < 20);
    blue.close();
    blue = session.createDurableConsumer(topic, "blue", "colour = 'blue'", false);
    same("the others", taken(blue, 40), i -> i % 2 == 1 && i >= 20);
    MessageConsumer other = session.createDurableConsumer(topic, "blue", "colour = 'red'", false);
    for (int i = 0; i < COUNT; i++) send(session, producer, i);
    same("anew", taken(other, 50), i -> i % 2 == 0);
    session.unsubscribe("blue");
    System.out.println("selected");
  }

  private static void send(Session session, MessageProducer producer, int i) throws Exception {
    Message message = session.createTextMessage("message " + i);
    message.setIntProperty("number", i);
    message.setStringProperty("colour", i % 2 == 0 ? "red" : "blue");
    message.setJMSType("kind-" + i % 3);
    message.setJMSCorrelationID("c-" + i);
    producer.setPriority(i % 10);
    producer.send(message);
  }

  private static List<Integer> browsed(QueueBrowser browser) throws Exception {
    List<Integer> numbers = new ArrayList<>();
    Enumeration<?> messages = browser.getEnumeration();
    while (messages.hasMoreElements()) numbers.add(((Message) messages.nextElement()).getIntProperty("number"));
    browser.close();
    return numbers;
  }

  private static List<Integer> received(MessageConsumer consumer, int count) throws Exception {
    List<Integer> numbers = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Message message = consumer.receive(RECEIVE_MS);
      if (message == null) throw new IllegalStateException("only " + numbers + " of " + count + " came");
      numbers.add(message.getIntProperty("number"));
    }
    return numbers;
  }

  /** All that there is: so many, and no more. */
  private static List<Integer> taken(MessageConsumer consumer, int count) throws Exception {
    List<Integer> numbers = received(consumer, count);
    Message more = consumer.receive(200);
    if (more != null) throw new IllegalStateException("not expected: " + more.getIntProperty("number"));
    consumer.close();
    return numbers;
  }

  private static int count(IntPredicate wanted) {
    return (int) IntStream.range(0, COUNT).filter(wanted).count();
  }

  private static void same(String what, List<Integer> numbers, IntPredicate wanted) {
    List<Integer> expected = IntStream.range(0, COUNT).filter(wanted).boxed().toList();
    if (!numbers.equals(expected)) throw new IllegalStateException(what + ": " + numbers + ", not " + expected);
  }

  private Selecting() {}
}
