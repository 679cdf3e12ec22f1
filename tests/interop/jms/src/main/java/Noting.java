import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.apache.qpid.jms.JmsConnectionFactory;
import realmgate.Ledger;

/**
 * An application that notes what it does in a ledger (deploy/ledger): it sends ten messages, and takes them
 * in all ways that JMS has.
 *
 * <pre>Noting URL QUEUE DIRECTORY</pre>
 */
public final class Noting {
  private static final long RECEIVE_MS = 60_000;

  public static void main(String[] arguments) throws Exception {
    String queue = arguments[1];
    ConnectionFactory factory = Ledger.of(new JmsConnectionFactory(arguments[0]), Path.of(arguments[2]));
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(session.createQueue(queue));
      for (int i = 0; i < 5; i++) {
        producer.send(session.createTextMessage("m\u00e9ssage " + i));
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {(byte) i, -1});
        producer.send(bytes);
      }
      inTransactions(connection, queue);
      byClient(connection, queue);
      byListener(connection, queue);
    }
    System.out.println("noted");
  }

  /** Sends two and takes two, rolls that back, and does it again. */
  private static void inTransactions(Connection connection, String queue) throws Exception {
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    MessageProducer producer = session.createProducer(session.createQueue(queue));
    MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
    for (boolean commits : new boolean[] {false, true}) {
      for (int i = 0; i < 2; i++) {
        producer.send(session.createTextMessage("in a transaction " + i));
        if (consumer.receive(RECEIVE_MS) == null) throw new IllegalStateException("nothing came");
      }
      if (commits) session.commit();
      else session.rollback();
    }
    session.close();
  }

  /** Takes three, recovers, takes them again, and acknowledges all at once. */
  private static void byClient(Connection connection, String queue) throws Exception {
    Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
    for (int i = 0; i < 3; i++) consumer.receive(RECEIVE_MS);
    session.recover();
    Message last = null;
    for (int i = 0; i < 3; i++) last = consumer.receive(RECEIVE_MS);
    last.acknowledge();
    session.close();
  }

  private static void byListener(Connection connection, String queue) throws Exception {
    CountDownLatch left = new CountDownLatch(7);
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    session.createConsumer(session.createQueue(queue)).setMessageListener(message -> left.countDown());
    left.await();
    session.close();
  }
}
