import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.StreamMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * The simplified API of JMS 2.0 (JMSContext) with Qpid JMS: sends that are confirmed asynchronously, acknowledgement by
 * the client and what it leaves, time to live and dead letters, large messages, every kind of message.
 *
 * <pre>
 * Contexts URL PREFIX LARGEST      LARGEST: the greatest message that the peer takes, in octets. PREFIX.expiring is a
 *                                  queue whose dead letters go to PREFIX.dead
 * </pre>
 *
 * Its producers have no destination, as in every context: they attach to no queue, a consumer comes first and makes it.
 * Prints one line; exit 0 when all is as it should be.
 */
public final class Contexts {
  private static final long RECEIVE_MS = 15_000;
  private static final long NOTHING_MS = 200;
  private static final long LIFE_MS = 200;

  public static void main(String[] arguments) throws Exception {
    String url = arguments[0];
    String prefix = arguments[1];
    acknowledged(url, prefix + ".acknowledged");
    expired(url, prefix + ".expiring", prefix + ".dead");
    large(url, prefix + ".large", Integer.parseInt(arguments[2]));
    try (JMSContext context = context(url, JMSContext.AUTO_ACKNOWLEDGE)) {
      kinds(context, context.createQueue(prefix + ".kinds"));
    }
    System.out.println("as JMS has it");
  }

  private static JMSContext context(String url, int mode) {
    return new JmsConnectionFactory(url).createContext(mode);
  }

  /** Ten messages; 0 to 3 are acknowledged by one call, 4 to 6 are only received. */
  private static void acknowledged(String url, String name) throws Exception {
    try (JMSContext context = context(url, JMSContext.CLIENT_ACKNOWLEDGE)) {
      JMSConsumer consumer = context.createConsumer(context.createQueue(name));
      confirmed(context, context.createQueue(name), 10);
      for (int i = 0; i < 3; i++) numbered(consumer, i, false);
      numbered(consumer, 3, false).acknowledge();
      for (int i = 4; i < 7; i++) numbered(consumer, i, false);
      context.recover();
      for (int i = 4; i < 7; i++) numbered(consumer, i, true);
    }
    try (JMSContext context = context(url, JMSContext.CLIENT_ACKNOWLEDGE)) {
      JMSConsumer consumer = context.createConsumer(context.createQueue(name));
      for (int i = 4; i < 7; i++) {
        Message again = numbered(consumer, i, true);
        check(again.getIntProperty("JMSXDeliveryCount") > 1, i + " was counted");
      }
      for (int i = 7; i < 10; i++) next(consumer);
      context.acknowledge();
      check(consumer.receive(NOTHING_MS) == null, "what was acknowledged came again");
    }
    try (JMSContext context = context(url, JMSContext.AUTO_ACKNOWLEDGE)) {
      JMSConsumer consumer = context.createConsumer(context.createQueue(name));
      check(consumer.receive(NOTHING_MS) == null, "what was acknowledged is still there");
    }
  }

  private static void confirmed(JMSContext context, Queue queue, int count) throws Exception {
    CountDownLatch all = new CountDownLatch(count);
    AtomicReference<Exception> refused = new AtomicReference<>();
    JMSProducer producer = context.createProducer().setAsync(new CompletionListener() {
      @Override
      public void onCompletion(Message message) {
        all.countDown();
      }

      @Override
      public void onException(Message message, Exception why) {
        refused.set(why);
      }
    });
    for (int i = 0; i < count; i++) producer.setProperty("number", i).send(queue, "message " + i);
    check(all.await(RECEIVE_MS, TimeUnit.MILLISECONDS), "not all were confirmed: " + refused.get());
  }

  private static Message numbered(JMSConsumer consumer, int number, boolean again) throws JMSException {
    Message message = next(consumer);
    same("number", message.getIntProperty("number"), number);
    same("redelivered " + number, message.getJMSRedelivered(), again);
    return message;
  }

  /** The client is told to leave it to the peer what has expired; who reads the dead letters looks for itself. */
  private static void expired(String url, String name, String dead) throws Exception {
    try (JMSContext context = context(url + "?jms.localMessageExpiry=false", JMSContext.AUTO_ACKNOWLEDGE)) {
      Queue queue = context.createQueue(name);
      JMSProducer producer = context.createProducer();
      for (int i = 0; i < 5; i++) producer.setTimeToLive(LIFE_MS).send(queue, "short " + i);
      producer.setTimeToLive(0).send(queue, "for ever");
      producer.setTimeToLive(3_600_000).send(queue, "long");
      Thread.sleep(2 * LIFE_MS); // until their time is over
      JMSConsumer consumer = context.createConsumer(queue);
      same("what lives", next(consumer).getBody(String.class), "for ever");
      Message lasting = next(consumer);
      same("what lives", lasting.getBody(String.class), "long");
      check(lasting.getJMSExpiration() > System.currentTimeMillis(), "over at " + lasting.getJMSExpiration());
      check(consumer.receive(NOTHING_MS) == null, "what had expired was given");
    }
    try (JMSContext context = context(url, JMSContext.AUTO_ACKNOWLEDGE)) {
      JMSConsumer consumer = context.createConsumer(context.createQueue(dead));
      for (int i = 0; i < 5; i++) {
        Message letter = next(consumer);
        same("dead letter", letter.getBody(String.class), "short " + i);
        same("expiration", letter.getJMSExpiration(), 0L);
      }
      check(consumer.receive(NOTHING_MS) == null, "more than had expired is dead");
    }
  }

  /** A text and octets of several megabytes there and back; one octet too many is refused, and ends that producer. */
  private static void large(String url, String name, int largest) throws Exception {
    String text = "é ☃ 𝄞 ".repeat(largest / 24);
    byte[] octets = new byte[largest - 1_000];
    new Random(7).nextBytes(octets);
    try (JMSContext context = context(url, JMSContext.AUTO_ACKNOWLEDGE)) {
      Queue queue = context.createQueue(name);
      JMSConsumer consumer = context.createConsumer(queue);
      context.createProducer().send(queue, text).send(queue, octets);
      same("the text", consumer.receiveBody(String.class, RECEIVE_MS).equals(text), true);
      same("the octets", Arrays.equals(consumer.receiveBody(byte[].class, RECEIVE_MS), octets), true);
      try {
        context.createProducer().send(queue, new byte[largest + 1]);
        throw new IllegalStateException("a message of " + (largest + 1) + " octets was taken");
      } catch (JMSRuntimeException refused) {
        String said = refused.getMessage();
        check(said.contains("amqp:link:message-size-exceeded"), said);
      }
      check(consumer.receive(NOTHING_MS) == null, "what was refused came");
    }
    try (JMSContext context = context(url, JMSContext.AUTO_ACKNOWLEDGE)) {
      Queue queue = context.createQueue(name);
      context.createProducer().send(queue, "small");
      same("the next", context.createConsumer(queue).receiveBody(String.class, RECEIVE_MS), "small");
    }
  }

  private static void kinds(JMSContext context, Queue queue) throws Exception {
    JMSConsumer consumer = context.createConsumer(queue);
    MapMessage map = context.createMapMessage();
    map.setInt("int", -7);
    map.setLong("long", Long.MIN_VALUE);
    map.setDouble("double", 0.1);
    map.setBoolean("boolean", true);
    map.setString("text", "é ☃ 𝄞");
    map.setBytes("octets", new byte[] {0, -1, 127});
    StreamMessage stream = context.createStreamMessage();
    stream.writeShort((short) -3);
    stream.writeFloat(1.5f);
    stream.writeChar('é');
    stream.writeString(null);
    ObjectMessage object = context.createObjectMessage(new ArrayList<>(List.of("one", 2)));
    BytesMessage octets = context.createBytesMessage();
    octets.writeUTF("in octets");
    for (Message each : List.of(map, stream, object, octets, context.createTextMessage(null))) {
      context.createProducer().send(queue, described(each));
    }
    MapMessage mapped = (MapMessage) same(next(consumer));
    same("int", mapped.getInt("int"), -7);
    same("long", mapped.getLong("long"), Long.MIN_VALUE);
    same("double", mapped.getDouble("double"), 0.1);
    same("boolean", mapped.getBoolean("boolean"), true);
    same("text", mapped.getString("text"), "é ☃ 𝄞");
    check(Arrays.equals(mapped.getBytes("octets"), new byte[] {0, -1, 127}), "octets of a map");
    StreamMessage streamed = (StreamMessage) same(next(consumer));
    same("short", streamed.readShort(), (short) -3);
    same("float", streamed.readFloat(), 1.5f);
    same("char", streamed.readChar(), 'é');
    check(streamed.readString() == null, "null in a stream");
    same("object", ((ObjectMessage) same(next(consumer))).getObject(), List.of("one", 2));
    same("octets", ((BytesMessage) same(next(consumer))).readUTF(), "in octets");
    check(same(next(consumer)).getBody(String.class) == null, "a text that is null");
  }

  /** The message with a property of every type, and with the headers that are the application's. */
  private static Message described(Message message) throws JMSException {
    message.setBooleanProperty("boolean", true);
    message.setByteProperty("byte", (byte) -1);
    message.setShortProperty("short", Short.MIN_VALUE);
    message.setIntProperty("int", Integer.MAX_VALUE);
    message.setLongProperty("long", Long.MIN_VALUE);
    message.setFloatProperty("float", 1.5f);
    message.setDoubleProperty("double", 0.1);
    message.setStringProperty("string", "é ☃ 𝄞");
    message.setJMSType("of this type");
    message.setJMSCorrelationIDAsBytes(new byte[] {1, 2, -3});
    return message;
  }

  private static Message same(Message message) throws JMSException {
    same("boolean", message.getObjectProperty("boolean"), true);
    same("byte", message.getObjectProperty("byte"), (byte) -1);
    same("short", message.getObjectProperty("short"), Short.MIN_VALUE);
    same("int", message.getObjectProperty("int"), Integer.MAX_VALUE);
    same("long", message.getObjectProperty("long"), Long.MIN_VALUE);
    same("float", message.getObjectProperty("float"), 1.5f);
    same("double", message.getObjectProperty("double"), 0.1);
    same("string", message.getObjectProperty("string"), "é ☃ 𝄞");
    same("type", message.getJMSType(), "of this type");
    check(Arrays.equals(message.getJMSCorrelationIDAsBytes(), new byte[] {1, 2, -3}), "correlation id");
    return message;
  }

  private static Message next(JMSConsumer consumer) {
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

  private Contexts() {}
}
