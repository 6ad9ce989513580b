package lab;

import java.util.List;
import java.util.stream.IntStream;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A list of 50 items on Spring MVC. The flag `spring.autoconfigure.exclude` leaves parts of Spring Boot out. */
@SpringBootApplication
@RestController
public class Service {
  record Item(int id, String name, int price) {}

  private static final List<Item> ITEMS =
      IntStream.range(0, 50).mapToObj(id -> new Item(id, "item " + id, id * 7 % 100)).toList();

  public static void main(String[] arguments) {
    SpringApplication.run(Service.class, arguments);
  }

  @GetMapping("/")
  List<Item> items() {
    return ITEMS;
  }

  /** Lets everybody through, with the headers and filters that are usual. */
  @Bean
  @ConditionalOnProperty("lab.security")
  SecurityFilterChain filters(HttpSecurity security) throws Exception {
    return security.authorizeHttpRequests(all -> all.anyRequest().permitAll()).build();
  }
}
