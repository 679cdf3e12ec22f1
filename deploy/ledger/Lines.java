package realmgate;

import jakarta.jms.BytesMessage;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.zip.CRC32;

/** How a message stands in the lines of a ledger. */
final class Lines {
  private static final String[] ENCODED = {"AMQP_NO_PREFIX:", "AMQP_STRING:", "AMQP_UUID:", "AMQP_ULONG:"};
  private static final String BINARY = "AMQP_BINARY:";

  private Lines() {}

  private interface Asked<T> {
    T now() throws JMSException;
  }

  /** Null where it cannot be known: an application fails by nothing that is asked for its ledger. */
  private static <T> T known(Asked<T> asked) {
    try {
      return asked.now();
    } catch (JMSException error) {
      return null;
    }
  }

  /** The message-id as AMQP has it: Qpid JMS says by a prefix what is no string that begins with ID:. */
  static String idOf(Message message) {
    String id = known(message::getJMSMessageID);
    if (id == null) return null;
    String rest = id.startsWith("ID:") ? id.substring(3) : id;
    for (String prefix : ENCODED) if (rest.startsWith(prefix)) return rest.substring(prefix.length());
    return rest.startsWith(BINARY) ? rest.substring(BINARY.length()).toLowerCase(Locale.ROOT) : id;
  }

  static String nameOf(Destination to) {
    String name = known(() -> to instanceof Queue queue ? queue.getQueueName() : ((Topic) to).getTopicName());
    return name == null ? "" : name;
  }

  /** Null where it has no checksum. */
  static String bodyOf(Message message) {
    if (message instanceof TextMessage text) {
      String content = known(text::getText);
      return content == null ? null : crc(content);
    }
    return message instanceof BytesMessage bytes ? known(() -> crc(octetsOf(bytes))) : null;
  }

  private static byte[] octetsOf(BytesMessage bytes) throws JMSException {
    byte[] octets = new byte[Math.toIntExact(bytes.getBodyLength())];
    bytes.readBytes(octets);
    bytes.reset();
    return octets;
  }

  private static String crc(String text) {
    return crc(text.getBytes(StandardCharsets.UTF_8));
  }

  private static String crc(byte[] octets) {
    CRC32 sum = new CRC32();
    sum.update(octets);
    return String.format("%08x", sum.getValue());
  }

  static String quoted(String text) {
    StringBuilder line = new StringBuilder("\"");
    text.codePoints().forEach(point -> {
      if (point == '"' || point == '\\') line.append('\\').appendCodePoint(point);
      else if (point < ' ') line.append(String.format("\\u%04x", point));
      else line.appendCodePoint(point);
    });
    return line.append('"').toString();
  }
}
