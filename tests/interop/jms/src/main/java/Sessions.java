import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Many sessions of one connection, as a pool of an application server has them.
 *
 * <pre>
 * Sessions many   URL QUEUE COUNT   opens so many, every other one transacted; each sends, and each has a consumer
 * Sessions large  URL QUEUE MIB     a transacted session sends a message of so many MiB and commits; another one takes
 *                                   it, rolls back, takes it again and commits
 * </pre>
 *
 * Prints one line; exit 0 when all is as it should be.
 */
public final class Sessions {
  private static final long RECEIVE_MS = 60_000;

  public static void main(String[] arguments) throws Exception {
    int count = Integer.parseInt(arguments[3]);
    try (Connection connection = new JmsConnectionFactory(arguments[1]).createConnection()) {
      connection.start();
      if (arguments[0].equals("many")) many(connection, arguments[2], count);
      else large(connection, arguments[2], count);
    }
  }

  private static void many(Connection connection, String name, int count) throws Exception {
    List<Session> sessions = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      boolean transacted = i % 2 == 1;
      Session session = connection.createSession(transacted, transacted ? 0 : Session.AUTO_ACKNOWLEDGE);
      Queue queue = session.createQueue(name + "." + i % 10);
      session.createProducer(queue).send(session.createTextMessage("" + i));
      if (transacted) session.commit();
      sessions.add(session);
    }
    Set<String> received = new HashSet<>();
    for (int i = 0; i < count; i++) {
      Session session = sessions.get(i);
      MessageConsumer consumer = session.createConsumer(session.createQueue(name + "." + i % 10));
      received.add(consumer.receive(RECEIVE_MS).getBody(String.class));
      if (i % 2 == 1) session.commit();
      consumer.close();
      if (i % 3 == 0) session.close();
    }
    if (received.size() != count) throw new IllegalStateException(received.size() + " of " + count + " came");
    System.out.println(count + " sessions sent and received");
  }

  private static void large(Connection connection, String name, int mebibytes) throws Exception {
    byte[] octets = new byte[mebibytes << 20];
    new Random(7).nextBytes(octets);
    Session sender = connection.createSession(true, 0);
    BytesMessage message = sender.createBytesMessage();
    message.writeBytes(octets);
    sender.createProducer(sender.createQueue(name)).send(message);
    sender.commit();
    Session receiver = connection.createSession(true, 0);
    MessageConsumer consumer = receiver.createConsumer(receiver.createQueue(name));
    for (int attempt = 0; attempt < 2; attempt++) {
      byte[] came = consumer.receive(RECEIVE_MS).getBody(byte[].class);
      if (!Arrays.equals(came, octets)) throw new IllegalStateException("other octets, attempt " + attempt);
      if (attempt == 0) receiver.rollback();
      else receiver.commit();
    }
    if (consumer.receiveNoWait() != null) throw new IllegalStateException("it came once more");
    System.out.println(octets.length + " octets there and back");
  }
}
