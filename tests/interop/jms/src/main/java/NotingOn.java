import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.qpid.jms.JmsConnectionFactory;
import realmgate.Ledger;

/**
 * An application that notes what it does in a ledger, and goes on while its connection fails over: it sends and takes
 * so many messages, each of which may come again.
 *
 * <pre>NotingOn URL QUEUE DIRECTORY COUNT</pre>
 */
public final class NotingOn {
  private static final long BETWEEN_MS = 20;

  public static void main(String[] arguments) throws Exception {
    String queue = arguments[1];
    int count = Integer.parseInt(arguments[3]);
    Set<String> came = ConcurrentHashMap.newKeySet();
    ConnectionFactory factory = Ledger.of(new JmsConnectionFactory(arguments[0]), Path.of(arguments[2]));
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session taking = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      taking.createConsumer(taking.createQueue(queue)).setMessageListener(message -> {
        try {
          came.add(message.getJMSMessageID());
        } catch (Exception error) {
          throw new IllegalStateException(error);
        }
      });
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(session.createQueue(queue));
      for (int i = 0; i < count; i++) {
        producer.send(session.createTextMessage("message " + i));
        Thread.sleep(BETWEEN_MS);
      }
      while (came.size() < count) Thread.sleep(BETWEEN_MS);
    }
    System.out.println("noted");
  }
}
