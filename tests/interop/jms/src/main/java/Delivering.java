import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * What JMS asks of a delivery, with Qpid JMS: delays, groups, noLocal, acknowledgement types, messages without a body.
 *
 * <pre>
 * Delivering all URL PREFIX
 * Delivering later URL QUEUE      sends one that is due in 3 s; prints when, in milliseconds since 1970
 * Delivering due URL QUEUE TIME   receives it, not before
 * </pre>
 *
 * Prints one line; exit 0 when all is as it should be.
 */
public final class Delivering {
  private static final long RECEIVE_MS = 15_000;
  private static final long DELAY_MS = 5_000;
  private static final int INDIVIDUAL = 101;

  public static void main(String[] arguments) throws Exception {
    String name = arguments[2];
    try (Connection connection = new JmsConnectionFactory(arguments[1]).createConnection()) {
      connection.setClientID("delivering");
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      switch (arguments[0]) {
        case "later" -> System.out.println(later(session, session.createQueue(name)));
        case "due" -> due(session.createConsumer(session.createQueue(name)), Long.parseLong(arguments[3]));
        default -> {
          delayed(session, session.createQueue(name + ".delayed"), session.createTopic(name + ".delayed.topic"));
          grouped(connection, session.createQueue(name + ".grouped"));
          local(session, session.createTopic(name + ".local"), arguments[1]);
          acknowledged(connection, session.createQueue(name + ".acknowledged"));
          empty(session, session.createQueue(name + ".empty"));
          System.out.println("delivered");
        }
      }
    }
  }

  private static void delayed(Session session, Queue queue, Topic topic) throws Exception {
    MessageConsumer durable = session.createDurableConsumer(topic, "delayed");
    MessageConsumer plain = session.createConsumer(topic);
    MessageConsumer consumer = session.createConsumer(queue);
    for (MessageConsumer each : List.of(durable, plain, consumer)) {
      MessageProducer producer = session.createProducer(each == consumer ? queue : topic);
      producer.setDeliveryDelay(DELAY_MS);
      Message late = session.createTextMessage("late");
      long begun = System.currentTimeMillis();
      producer.send(late);
      producer.setDeliveryDelay(0);
      producer.send(session.createTextMessage("soon"));
      Message first = next(each);
      Message second = next(each);
      long took = System.currentTimeMillis() - begun;
      same("order", first.getBody(String.class) + second.getBody(String.class), "soonlate");
      check(took >= DELAY_MS, "given after " + took + " ms");
      same("delivery time", second.getJMSDeliveryTime(), late.getJMSDeliveryTime());
      check(!second.getJMSRedelivered(), "it was not given before");
      for (int i = 0; each != consumer && i < 2; i++) next(each == durable ? plain : durable);
    }
    durable.close();
    session.unsubscribe("delayed");
  }

  private static long later(Session session, Queue queue) throws Exception {
    MessageProducer producer = session.createProducer(queue);
    producer.setDeliveryDelay(3_000);
    Message message = session.createTextMessage("late");
    producer.send(message);
    check(session.createConsumer(queue).receive(300) == null, "it came at once");
    return message.getJMSDeliveryTime();
  }

  private static void due(MessageConsumer consumer, long time) throws Exception {
    next(consumer);
    check(System.currentTimeMillis() >= time, "it came too early");
    System.out.println("due");
  }

  private static void grouped(Connection connection, Queue queue) throws Exception {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    List<MessageConsumer> consumers = List.of(session.createConsumer(queue), session.createConsumer(queue));
    for (MessageConsumer each : consumers) check(each.receive(100) == null, "a new queue");
    MessageProducer producer = session.createProducer(queue);
    for (int i = 0; i < 100; i++) {
      Message message = session.createTextMessage("message " + i);
      message.setStringProperty("JMSXGroupID", "group " + i % 10);
      message.setIntProperty("JMSXGroupSeq", i / 10 + 1);
      message.setIntProperty("number", i);
      producer.send(message);
    }
    Map<String, MessageConsumer> keepers = new HashMap<>();
    Map<String, Integer> latest = new HashMap<>();
    int count = 0;
    long until = System.currentTimeMillis() + RECEIVE_MS;
    while (count < 100 && System.currentTimeMillis() < until) {
      for (MessageConsumer each : consumers) {
        Message message = each.receive(10);
        if (message == null) continue;
        count++;
        until = System.currentTimeMillis() + RECEIVE_MS;
        String group = message.getStringProperty("JMSXGroupID");
        check(keepers.computeIfAbsent(group, one -> each) == each, group + " at both");
        int before = latest.getOrDefault(group, 0);
        same("sequence of " + group, message.getIntProperty("JMSXGroupSeq"), before + 1);
        latest.put(group, before + 1);
      }
    }
    same("messages", count, 100);
    for (MessageConsumer each : consumers) check(each.receive(300) == null, "one message more");
    same("consumers", new HashSet<>(keepers.values()).size(), 2);
    session.close();
  }

  private static void local(Session session, Topic topic, String url) throws Exception {
    MessageConsumer others = session.createConsumer(topic, null, true);
    MessageConsumer durable = session.createDurableConsumer(topic, "others", "kind = 'a'", true);
    session.createProducer(topic).send(kind(session, "a"));
    try (Connection another = new JmsConnectionFactory(url).createConnection()) {
      another.setClientID("another");
      Session its = another.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = its.createProducer(topic);
      producer.send(kind(its, "a"));
      producer.send(kind(its, "b"));
    }
    same("others'", kinds(others, 2), List.of("a", "b"));
    same("the durable's", kinds(durable, 1), List.of("a"));
    durable.close();
    session.unsubscribe("others");
  }

  private static Message kind(Session session, String kind) throws JMSException {
    Message message = session.createMessage();
    message.setStringProperty("kind", kind);
    return message;
  }

  private static List<String> kinds(MessageConsumer consumer, int count) throws JMSException {
    List<String> kinds = new ArrayList<>();
    for (int i = 0; i < count; i++) kinds.add(next(consumer).getStringProperty("kind"));
    check(consumer.receive(300) == null, "one message more");
    return kinds;
  }

  /** Types 1 to 5: accepted, rejected, released, modified as failed, and so that it goes elsewhere. */
  private static void acknowledged(Connection connection, Queue queue) throws Exception {
    Session session = connection.createSession(false, INDIVIDUAL);
    MessageProducer producer = session.createProducer(queue);
    for (int type = 1; type <= 5; type++) {
      Message message = session.createTextMessage("type " + type);
      message.setIntProperty("type", type);
      producer.send(message);
    }
    MessageConsumer consumer = session.createConsumer(queue);
    List<Message> messages = new ArrayList<>();
    for (int i = 0; i < 5; i++) messages.add(next(consumer));
    for (Message each : messages) {
      each.setIntProperty("JMS_AMQP_ACK_TYPE", each.getIntProperty("type"));
      each.acknowledge();
    }
    Map<Integer, Integer> again = new HashMap<>();
    for (int i = 0; i < 2; i++) {
      Message each = next(consumer);
      again.put(each.getIntProperty("type"), each.getIntProperty("JMSXDeliveryCount"));
      each.acknowledge();
    }
    same("again", again, Map.of(3, 1, 4, 2));
    check(consumer.receive(300) == null, "what is to go elsewhere came again");
    MessageConsumer other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
    Message elsewhere = next(other);
    same("elsewhere", Set.of(elsewhere.getIntProperty("type"), elsewhere.getIntProperty("JMSXDeliveryCount")),
        Set.of(5, 2));
    check(other.receive(300) == null, "what was rejected came again");
    session.close();
  }

  /** A plain message has no body section; a drain finds what was just stored. */
  private static void empty(Session session, Queue queue) throws Exception {
    MessageConsumer consumer = session.createConsumer(queue);
    MessageProducer producer = session.createProducer(queue);
    for (int i = 0; i < 20; i++) {
      check(consumer.receiveNoWait() == null, "there is nothing");
      Message message = session.createMessage();
      message.setIntProperty("number", i);
      producer.send(message);
      Message got = consumer.receiveNoWait();
      check(got != null, "message " + i + " was stored, and a drain did not find it");
      same("number", got.getIntProperty("number"), i);
    }
  }

  private static Message next(MessageConsumer consumer) throws JMSException {
    Message message = consumer.receive(RECEIVE_MS);
    if (message == null) throw new IllegalStateException("nothing came");
    return message;
  }

  private static void same(String what, Object found, Object expected) {
    check(found.equals(expected), what + ": " + found + ", not " + expected);
  }

  private static void check(boolean holds, String otherwise) {
    if (!holds) throw new IllegalStateException(otherwise);
  }

  private Delivering() {}
}
